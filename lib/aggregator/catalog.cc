#include "aggregator/catalog.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
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

}  // namespace

base::Result<Catalog> Catalog::Open(const base::Path& path) {
  FL_ASSIGN_OR_RETURN(Journal::Opened opened, Journal::Open(path));
  Catalog catalog(std::move(opened.journal));
  for (const std::string& line : opened.lines) {
    const base::Status status = catalog.Apply(line);
    if (!status.ok()) return status.WithContext(path.string());
  }
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

base::Status Catalog::SetModel(const spec::FederatedModel& model) {
  if (model_ == model) return base::OkStatus();
  FL_RETURN_IF_ERROR(journal_.Append(
      base::DumpJson(json{{"type", "model"}, {"object", spec::ToJson(model)}}), true));
  model_ = model;
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
  json texts = json::array();
  for (const spec::FederatedClient& client : clients) {
    next[base::ClientName(client.metadata.name)] = client;
    texts.push_back(spec::ToJson(client));
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
  FL_RETURN_IF_ERROR(journal_.Append(
      base::DumpJson(
          json{{"type", "clients"}, {"revision", revision}, {"objects", std::move(texts)}}),
      true));
  clients_ = std::move(next);
  clients_revision_ = revision;
  return base::OkStatus();
}

base::Status Catalog::AddJob(const base::JobName& job) {
  FL_RETURN_IF_ERROR(
      journal_.Append(base::DumpJson(json{{"type", "job-added"}, {"name", job.str()}}), true));
  jobs_.push_back(job);
  return base::OkStatus();
}

base::Status Catalog::RemoveJob(const base::JobName& job) {
  FL_RETURN_IF_ERROR(
      journal_.Append(base::DumpJson(json{{"type", "job-removed"}, {"name", job.str()}}), true));
  std::erase(jobs_, job);
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
  FL_RETURN_IF_ERROR(journal_.Append(
      base::DumpJson(
          json{{"type", "join-token"}, {"name", client.str()}, {"value", token.ToString()}}),
      true));
  join_tokens_[client] = token;
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
  FL_RETURN_IF_ERROR(journal_.Append(
      base::DumpJson(
          json{{"type", "key-bound"}, {"name", client.str()}, {"value", key.ToOpenSsh()}}),
      true));
  bound_keys_[client] = key.ToOpenSsh();
  join_tokens_.erase(client);
  return base::OkStatus();
}

}  // namespace fl::aggregator
