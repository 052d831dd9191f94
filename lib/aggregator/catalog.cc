#include "aggregator/catalog.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "obs/log.h"
#include "spec/json.h"

namespace fl::aggregator {
namespace {

using nlohmann::json;

base::Result<std::vector<spec::FederatedClient>> ReadClients(
    const std::vector<std::string>& texts) {
  std::vector<spec::FederatedClient> clients;
  for (const std::string& text : texts) {
    FL_ASSIGN_OR_RETURN(spec::FederatedClient client, spec::FromJson<spec::FederatedClient>(text));
    clients.push_back(std::move(client));
  }
  return clients;
}

std::string ModelEntry(const spec::FederatedModel& model) {
  return base::DumpJson(json{{"type", "model"}, {"object", spec::ToJson(model)}});
}

std::string ClientsEntry(int64_t revision,
                         const std::map<base::ClientName, spec::FederatedClient>& clients) {
  json texts = json::array();
  for (const auto& [name, client] : clients) texts.push_back(spec::ToJson(client));
  return base::DumpJson(
      json{{"type", "clients"}, {"revision", revision}, {"objects", std::move(texts)}});
}

std::string JobEntryOf(std::string_view type, const base::JobName& job) {
  return base::DumpJson(json{{"type", type}, {"name", job.str()}});
}

std::string ClientEntry(std::string_view type, const base::ClientName& client,
                        const std::string& value) {
  return base::DumpJson(json{{"type", type}, {"name", client.str()}, {"value", value}});
}

}  // namespace

base::Result<Catalog> Catalog::Open(const base::Path& path) {
  FL_ASSIGN_OR_RETURN(Journal::Opened opened, Journal::Open(path));
  Catalog catalog(std::move(opened.journal));
  for (const std::string& line : opened.lines) {
    const base::Status status = catalog.Apply(line);
    if (!status.ok()) return status.WithContext(path.string());
  }
  catalog.Compact();
  return catalog;
}

base::Status Catalog::Apply(const std::string& line) {
  FL_ASSIGN_OR_RETURN(const json object, base::ParseJson(line, "catalog entry"));
  base::JsonReader reader(object, "catalog entry");
  std::string type;
  std::string name;
  reader.Required("type", &type);
  if (type == "model") {
    std::string text;
    reader.Required("object", &text);
    FL_RETURN_IF_ERROR(reader.status());
    FL_ASSIGN_OR_RETURN(model_, spec::FromJson<spec::FederatedModel>(text));
    return base::OkStatus();
  }
  if (type == "clients") {
    std::vector<std::string> texts;
    reader.Required("objects", &texts);
    reader.Required("revision", &clients_revision_);
    FL_RETURN_IF_ERROR(reader.status());
    FL_ASSIGN_OR_RETURN(const std::vector<spec::FederatedClient> clients, ReadClients(texts));
    clients_.clear();
    for (const spec::FederatedClient& client : clients) {
      clients_[base::ClientName(client.metadata.name)] = client;
    }
    return base::OkStatus();
  }
  reader.Required("name", &name);
  std::string value;
  reader.Optional("value", &value);
  FL_RETURN_IF_ERROR(reader.status());
  if (type == "job-added") {
    jobs_.emplace_back(name);
  } else if (type == "job-removed") {
    std::erase(jobs_, base::JobName(name));
  } else if (type == "join-token") {
    FL_ASSIGN_OR_RETURN(join_tokens_[base::ClientName(name)], base::Digest::Parse(value));
  } else if (type == "key-bound") {
    bound_keys_[base::ClientName(name)] = value;
    join_tokens_.erase(base::ClientName(name));
  } else {
    return base::DataLoss("catalog entry: unknown type \"" + type + "\"");
  }
  return base::OkStatus();
}

std::vector<std::string> Catalog::Entries() const {
  std::vector<std::string> entries;
  if (model_) entries.push_back(ModelEntry(*model_));
  if (clients_revision_ != 0 || !clients_.empty()) {
    entries.push_back(ClientsEntry(clients_revision_, clients_));
  }
  for (const base::JobName& job : jobs_) entries.push_back(JobEntryOf("job-added", job));
  // A key that is bound ends a token, so that those that still wait come after.
  for (const auto& [client, key] : bound_keys_) {
    entries.push_back(ClientEntry("key-bound", client, key));
  }
  for (const auto& [client, token] : join_tokens_) {
    entries.push_back(ClientEntry("join-token", client, token.ToString()));
  }
  return entries;
}

void Catalog::Compact() {
  if (journal_.size() < compact_at_) return;
  const std::vector<std::string> entries = Entries();
  uint64_t living = 0;
  for (const std::string& entry : entries) living += entry.size();
  if (journal_.size() > 2 * living) {
    const base::Status compacted = journal_.Replace(entries);
    if (!compacted.ok()) {
      obs::Warning("the catalog's journal could not be made smaller", {{"reason", compacted}});
    }
  }
  // Written anew each time it has doubled, an entry is written a bounded number of times.
  compact_at_ = std::max(kCompactAt, 2 * journal_.size());
}

base::Status Catalog::SetModel(const spec::FederatedModel& model) {
  if (model_ == model) return base::OkStatus();
  FL_RETURN_IF_ERROR(journal_.Append(ModelEntry(model), true));
  model_ = model;
  Compact();
  return base::OkStatus();
}

base::Status Catalog::SetClients(int64_t revision,
                                 const std::vector<spec::FederatedClient>& clients) {
  if (revision < clients_revision_) {
    return base::FailedPrecondition("the clients of revision " + std::to_string(revision) +
                                        " are older than those of revision " +
                                        std::to_string(clients_revision_),
                                    "read the clients again and send a higher revision");
  }
  std::map<base::ClientName, spec::FederatedClient> next;
  for (const spec::FederatedClient& client : clients) {
    next[base::ClientName(client.metadata.name)] = client;
  }
  if (next == clients_) {
    clients_revision_ = revision;
    return base::OkStatus();
  }
  if (revision == clients_revision_) {
    return base::FailedPrecondition(
        "revision " + std::to_string(revision) + " was given before, with other clients",
        "read the clients again and send a higher revision");
  }
  FL_RETURN_IF_ERROR(journal_.Append(ClientsEntry(revision, next), true));
  clients_ = std::move(next);
  clients_revision_ = revision;
  Compact();
  return base::OkStatus();
}

base::Status Catalog::AddJob(const base::JobName& job) {
  FL_RETURN_IF_ERROR(journal_.Append(JobEntryOf("job-added", job), true));
  jobs_.push_back(job);
  Compact();
  return base::OkStatus();
}

base::Status Catalog::RemoveJob(const base::JobName& job) {
  FL_RETURN_IF_ERROR(journal_.Append(JobEntryOf("job-removed", job), true));
  std::erase(jobs_, job);
  Compact();
  return base::OkStatus();
}

std::optional<base::PublicKey> Catalog::KeyOf(const base::ClientName& client) const {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return std::nullopt;
  std::optional<std::string> text = found->second.spec.public_key;
  if (const auto bound = bound_keys_.find(client); !text && bound != bound_keys_.end()) {
    text = bound->second;
  }
  if (!text) return std::nullopt;
  base::Result<base::PublicKey> key = base::PublicKey::ParseOpenSsh(*text);
  return key.ok() ? std::optional(*std::move(key)) : std::nullopt;
}

base::Status Catalog::AddJoinToken(const base::ClientName& client, const base::Digest& token) {
  if (!clients_.contains(client)) {
    return base::NotFound("no client \"" + client.str() + "\"",
                          "submit its FederatedClient object first");
  }
  if (KeyOf(client)) {
    return base::FailedPrecondition("client \"" + client.str() + "\" has a key already");
  }
  FL_RETURN_IF_ERROR(journal_.Append(ClientEntry("join-token", client, token.ToString()), true));
  join_tokens_[client] = token;
  Compact();
  return base::OkStatus();
}

base::Status Catalog::BindKey(const base::ClientName& client, const std::string& token,
                              const base::PublicKey& key) {
  const auto found = join_tokens_.find(client);
  if (found == join_tokens_.end() || found->second != base::Digest::Of(token)) {
    return base::PermissionDenied(
        "the join token is not valid for client \"" + client.str() + "\", or was used",
        "ask an administrator for a new one");
  }
  FL_RETURN_IF_ERROR(journal_.Append(ClientEntry("key-bound", client, key.ToOpenSsh()), true));
  bound_keys_[client] = key.ToOpenSsh();
  join_tokens_.erase(client);
  Compact();
  return base::OkStatus();
}

}  // namespace fl::aggregator
