#include "cli/job_view.h"

#include <charconv>

#include "spec/json.h"
#include "spec/validate.h"

namespace fl::cli {
namespace {

using spec::Value;

Value Optional(const std::optional<base::VersionNumber>& version) {
  return version ? Value(version->value()) : Value();
}

Value MetricsData(const std::map<std::string, double>& metrics) {
  Value::Map map;
  for (const auto& [name, value] : metrics) map.emplace(name, value);
  return map;
}

std::string Text(const std::optional<int64_t>& number) {
  return number ? std::to_string(*number) : "";
}
std::string Text(const std::optional<base::VersionNumber>& version) {
  return version ? std::to_string(version->value()) : "";
}

bool Holds(const wire::JobStatus& status, std::string_view type) {
  const wire::Condition* condition = status.Find(type);
  return condition != nullptr && condition->status;
}

std::string ModelOf(const Value& job) {
  const Value* node = &job;
  for (const char* key : {"spec", "modelRef", "name"}) {
    node = node->Find(key);
    if (node == nullptr) return "";
  }
  const std::string* name = node->As<std::string>();
  return name == nullptr ? "" : *name;
}

std::string Age(const std::string& time, base::Time now) {
  const base::Result<base::Time> then = base::ParseTime(time);
  return then.ok() ? FormatAge(*then, now) : "";
}

}  // namespace

JobState StateOf(const wire::JobStatus& status) {
  if (Holds(status, "Succeeded")) return {"Succeeded", Icon::kDone, Ink::kGreen};
  if (Holds(status, "Failed")) return {"Failed", Icon::kFailed, Ink::kRed};
  if (Holds(status, "Suspended")) return {"Suspended", Icon::kPaused, Ink::kYellow};
  if (Holds(status, "Progressing")) return {"Running", Icon::kRunning, Ink::kCyan};
  return {"Waiting", Icon::kWaiting, Ink::kPlain};
}

std::string ReasonOf(const wire::JobStatus& status) {
  for (const char* type : {"Failed", "Succeeded", "Suspended"}) {
    const wire::Condition* condition = status.Find(type);
    if (condition != nullptr && condition->status) {
      return condition->message.empty() ? condition->reason : condition->message;
    }
  }
  const wire::Condition* progressing = status.Find("Progressing");
  return progressing == nullptr ? "" : progressing->message;
}

Icon IconOf(const wire::RoundClient& client) {
  if (client.state == "Accepted") return Icon::kDone;
  if (client.state == "Rejected") return Icon::kFailed;
  if (client.state == "Late") return Icon::kWarning;
  return Icon::kRunning;
}

Value ToData(const wire::JobView& job) { return ValueFromJson(wire::ToJson(job)); }

Value ToData(const ClientView& client) {
  Value data;
  if (client.object) {
    data = spec::ToValue(*client.object);
  } else {
    Value::Map labels;
    for (const auto& [key, value] : client.status.labels) labels.emplace(key, value);
    data = Value::Map{
        {"apiVersion", spec::kApiVersion},
        {"kind", spec::FederatedClient::kKind},
        {"metadata", Value::Map{{"labels", std::move(labels)}, {"name", client.status.name}}}};
  }
  const wire::ClientStatus& status = client.status;
  Value::Map map{{"connected", status.connected},
                 {"fenced", status.fenced},
                 {"roundsAccepted", status.rounds_accepted},
                 {"roundsRejected", status.rounds_rejected}};
  for (const auto& [key, text] :
       {std::pair<const char*, const std::string&>{"lastSeen", status.last_seen},
        {"software", status.software},
        {"task", status.task},
        {"lastError", status.last_error}}) {
    if (!text.empty()) map.emplace(key, text);
  }
  data.As<Value::Map>()->emplace("status", std::move(map));
  return data;
}

Value ToData(const ModelSummary& model) {
  Value::Map status{{"versions", model.versions}, {"metrics", MetricsData(model.metrics)}};
  for (const auto& [key, version] :
       {std::pair{"currentVersion", model.current}, std::pair{"latestVersion", model.latest},
        std::pair{"promotedVersion", model.promoted}, std::pair{"pinnedVersion", model.pinned}}) {
    if (version) status.emplace(key, version->value());
  }
  if (model.updated) status.emplace("updated", base::FormatTime(*model.updated));
  return Value::Map{{"apiVersion", spec::kApiVersion},
                    {"kind", spec::FederatedModel::kKind},
                    {"metadata", Value::Map{{"name", model.name.str()}}},
                    {"status", std::move(status)}};
}

Value ToData(const VersionView& view) {
  const registry::VersionInfo& info = view.info;
  Value::List tags;
  for (const std::string& tag : view.tags) tags.emplace_back(tag);
  Value::Map map{{"contributors", info.contributors},
                 {"created", base::FormatTime(info.created)},
                 {"metrics", MetricsData(info.metrics)},
                 {"parent", info.parent ? Optional(info.parent->version) : Value()},
                 {"pruned", info.pruned},
                 {"round", info.round.value()},
                 {"size", static_cast<int64_t>(info.weights_size)},
                 {"tags", std::move(tags)},
                 {"version", info.version.value()}};
  if (!info.job.empty()) map.emplace("job", info.job.str());
  if (!info.algorithm.empty()) map.emplace("algorithm", info.algorithm);
  if (!info.software.empty()) map.emplace("software", info.software);
  for (const auto& [key, digest] :
       {std::pair{"digest", info.manifest}, std::pair{"weightsDigest", info.weights},
        std::pair{"stateDigest", info.state.value_or(base::Digest())},
        std::pair{"configDigest", info.config_digest}}) {
    if (!digest.empty()) map.emplace(key, digest.ToString());
  }
  if (info.privacy) {
    map.emplace("privacy",
                Value::Map{{"delta", info.privacy->delta}, {"epsilon", info.privacy->epsilon}});
  }
  return map;
}

Document JobsDocument(const std::vector<wire::JobView>& jobs, base::Time now) {
  Document document{.empty = "no jobs"};
  document.table.columns = {{.title = "NAME"},    {.title = "STATE"},
                            {.title = "ROUND"},   {.title = "MODEL"},
                            {.title = "VERSION"}, {.title = "METRICS"},
                            {.title = "AGE"},     {.title = "MESSAGE", .wide = true}};
  Value::List items;
  for (const wire::JobView& job : jobs) {
    Value data = ToData(job);
    const wire::JobStatus& status = job.status;
    const std::string name = JobNameOf(job).str();
    document.table.rows.push_back(
        {name, StateOf(status).name,
         std::to_string(status.rounds_done) + "/" + std::to_string(status.rounds_total),
         ModelOf(data), Text(status.model_version), FormatMetrics(status.metrics),
         Age(status.start_time, now), ReasonOf(status)});
    document.names.push_back("job/" + name);
    items.push_back(std::move(data));
  }
  document.data = ListOf(std::move(items));
  return document;
}

Document ClientsDocument(const std::vector<ClientView>& clients, base::Time now) {
  Document document{.empty = "no clients"};
  document.table.columns = {{.title = "NAME"},
                            {.title = "CONNECTED"},
                            {.title = "TASK"},
                            {.title = "ACCEPTED"},
                            {.title = "REJECTED"},
                            {.title = "SEEN"},
                            {.title = "LABELS", .wide = true},
                            {.title = "SOFTWARE", .wide = true},
                            {.title = "LAST ERROR", .wide = true}};
  Value::List items;
  for (const ClientView& client : clients) {
    const wire::ClientStatus& status = client.status;
    std::string labels;
    for (const auto& [key, value] : status.labels) {
      labels += (labels.empty() ? "" : ",") + key + "=" + value;
    }
    const std::string seen = Age(status.last_seen, now);
    document.table.rows.push_back({status.name,
                                   status.fenced      ? "fenced"
                                   : status.connected ? "yes"
                                                      : "no",
                                   status.task, std::to_string(status.rounds_accepted),
                                   std::to_string(status.rounds_rejected),
                                   seen.empty() ? "never" : seen + " ago", labels, status.software,
                                   status.last_error});
    document.names.push_back("client/" + status.name);
    items.push_back(ToData(client));
  }
  document.data = ListOf(std::move(items));
  return document;
}

Document ModelsDocument(const std::vector<ModelSummary>& models, base::Time now) {
  Document document{.empty = "no models"};
  document.table.columns = {{.title = "NAME"},     {.title = "CURRENT"}, {.title = "LATEST"},
                            {.title = "PROMOTED"}, {.title = "PINNED"},  {.title = "VERSIONS"},
                            {.title = "METRICS"},  {.title = "UPDATED"}};
  Value::List items;
  for (const ModelSummary& model : models) {
    document.table.rows.push_back({model.name.str(), Text(model.current), Text(model.latest),
                                   Text(model.promoted), Text(model.pinned),
                                   std::to_string(model.versions), FormatMetrics(model.metrics),
                                   model.updated ? FormatAge(*model.updated, now) + " ago" : ""});
    document.names.push_back("model/" + model.name.str());
    items.push_back(ToData(model));
  }
  document.data = ListOf(std::move(items));
  return document;
}

Document Single(Document document) {
  Value* items = nullptr;
  if (Value::Map* list = document.data.As<Value::Map>()) items = &list->at("items");
  FL_CHECK(items != nullptr && items->As<Value::List>()->size() == 1);
  Value only = std::move(items->As<Value::List>()->front());
  document.data = std::move(only);
  return document;
}

base::Result<base::JobName> ParseJobName(const std::string& name) {
  FL_RETURN_IF_ERROR(spec::CheckName(name, "job name"));
  return base::JobName(name);
}

base::Result<base::ModelName> ParseModelName(const std::string& name) {
  FL_RETURN_IF_ERROR(spec::CheckName(name, "model name"));
  return base::ModelName(name);
}

base::Result<base::VersionNumber> ParseVersion(const std::string& text) {
  const char* begin = text.data() + (text.starts_with('v') ? 1 : 0);
  const char* end = text.data() + text.size();
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || stop != end || number < 0) {
    return base::InvalidArgument("\"" + text + "\" is not a version", "write e.g. 3 or v3");
  }
  return base::VersionNumber(number);
}

}  // namespace fl::cli
