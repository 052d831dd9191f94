#include "wire/status.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace fl::wire {
namespace {

using nlohmann::json;

// Each struct lists its fields once, in Visit; Writer makes JSON of them and Reader takes them
// back.
class Writer;
class Reader;

template <typename Visitor>
void Visit(Visitor& visit, Condition& c) {
  visit("type", c.type);
  visit("status", c.status);
  visit("reason", c.reason);
  visit("message", c.message);
  visit("lastTransitionTime", c.last_transition_time);
}

template <typename Visitor>
void Visit(Visitor& visit, RoundClient& c) {
  visit("name", c.name);
  visit("state", c.state);
  visit("reason", c.reason);
  visit("samples", c.samples);
}

template <typename Visitor>
void Visit(Visitor& visit, RoundStatus& r) {
  visit("number", r.number);
  visit("attempt", r.attempt);
  visit("phase", r.phase);
  visit("startTime", r.start_time);
  visit("endTime", r.end_time);
  visit("deadline", r.deadline);
  visit("selected", r.selected);
  visit("accepted", r.accepted);
  visit("rejected", r.rejected);
  visit("version", r.version);
  visit("metrics", r.metrics);
  visit("message", r.message);
  visit("clients", r.clients);
}

template <typename Visitor>
void Visit(Visitor& visit, JobStatus& s) {
  visit("observedAttempt", s.observed_attempt);
  visit("conditions", s.conditions);
  visit("round", s.round);
  visit("recentRounds", s.recent_rounds);
  visit("metrics", s.metrics);
  visit("baseVersion", s.base_version);
  visit("modelVersion", s.model_version);
  visit("roundsDone", s.rounds_done);
  visit("roundsTotal", s.rounds_total);
  visit("startTime", s.start_time);
  visit("endTime", s.end_time);
  visit("secondsLeft", s.seconds_left);
}

template <typename Visitor>
void Visit(Visitor& visit, ClientStatus& c) {
  visit("name", c.name);
  visit("labels", c.labels);
  visit("connected", c.connected);
  visit("fenced", c.fenced);
  visit("lastSeen", c.last_seen);
  visit("software", c.software);
  visit("task", c.task);
  visit("roundsAccepted", c.rounds_accepted);
  visit("roundsRejected", c.rounds_rejected);
  visit("lastError", c.last_error);
}

template <typename Visitor>
void Visit(Visitor& visit, VersionStatus& v) {
  visit("version", v.version);
  visit("digest", v.digest);
  visit("parent", v.parent);
  visit("job", v.job);
  visit("round", v.round);
  visit("algorithm", v.algorithm);
  visit("contributors", v.contributors);
  visit("metrics", v.metrics);
  visit("size", v.size);
  visit("created", v.created);
  visit("pruned", v.pruned);
  visit("tags", v.tags);
}

template <typename Visitor>
void Visit(Visitor& visit, AggregatorStatus& s) {
  visit("id", s.id);
  visit("software", s.software);
  visit("model", s.model);
  visit("registry", s.registry);
  visit("revision", s.revision);
  visit("jobs", s.jobs);
  visit("activeJob", s.active_job);
  visit("clients", s.clients);
  visit("connected", s.connected);
}

template <typename Visitor>
void Visit(Visitor& visit, JobEvent& e) {
  visit("sequence", e.sequence);
  visit("time", e.time);
  visit("level", e.level);
  visit("message", e.message);
}

template <typename T>
concept Plain = std::is_arithmetic_v<T> || std::is_same_v<T, std::string> ||
                std::is_same_v<T, std::vector<std::string>> ||
                std::is_same_v<T, std::map<std::string, double>> ||
                std::is_same_v<T, std::map<std::string, std::string>>;

/// Leaves out what is empty.
class Writer {
 public:
  template <Plain T>
  void operator()(const char* key, const T& value) {
    if constexpr (!std::is_arithmetic_v<T>) {
      if (value.empty()) return;
    }
    object[key] = value;
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    if (value) (*this)(key, *value);
  }
  template <typename T>
    requires(!Plain<T>)
  void operator()(const char* key, T& value) {
    object[key] = Write(value);
  }
  template <typename T>
    requires(!Plain<std::vector<T>>)
  void operator()(const char* key, std::vector<T>& values) {
    if (!values.empty()) object[key] = WriteAll(values);
  }

  template <typename T>
  static json Write(const T& value) {
    Writer writer;
    Visit(writer, const_cast<T&>(value));
    return std::move(writer.object);
  }
  template <typename T>
  static json WriteAll(const std::vector<T>& values) {
    json list = json::array();
    for (const T& value : values) list.push_back(Write(value));
    return list;
  }

  json object = json::object();
};

class Reader {
 public:
  Reader(const json& object, const std::string& where) : fields_(object, where), where_(where) {}

  template <Plain T>
  void operator()(const char* key, T& value) {
    fields_.Optional(key, &value);
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    if (!fields_.Has(key)) return;
    T read{};
    (*this)(key, read);
    value = std::move(read);
  }
  template <typename T>
    requires(!Plain<T>)
  void operator()(const char* key, T& value) {
    if (!fields_.Has(key)) return;
    if (const json* child = fields_.Child(key)) Take(Read(*child, where_ + "." + key, &value));
  }
  template <typename T>
    requires(!Plain<std::vector<T>>)
  void operator()(const char* key, std::vector<T>& values) {
    if (!fields_.Has(key)) return;
    if (const json* child = fields_.Child(key)) Take(ReadAll(*child, where_ + "." + key, &values));
  }

  template <typename T>
  static base::Status Read(const json& object, const std::string& where, T* value) {
    Reader reader(object, where);
    Visit(reader, *value);
    return reader.fields_.status();
  }
  template <typename T>
  static base::Status ReadAll(const json& list, const std::string& where, std::vector<T>* values) {
    if (!list.is_array()) return base::InvalidArgument(where + ": must be a list");
    for (const json& item : list) {
      FL_RETURN_IF_ERROR(Read(item, where, &values->emplace_back()));
    }
    return base::OkStatus();
  }

 private:
  void Take(const base::Status& status) {
    if (!status.ok()) fields_.Fail(status);
  }
  base::JsonReader fields_;
  std::string where_;
};

template <typename T>
std::string ListToJson(const char* key, const std::vector<T>& values,
                       std::optional<uint64_t> revision) {
  json document = {{key, Writer::WriteAll(values)}};
  if (revision) document["revision"] = *revision;
  return base::DumpJson(document);
}

template <typename T>
base::Result<std::vector<T>> ListFromJson(const char* key, std::string_view text) {
  FL_ASSIGN_OR_RETURN(const json document, base::ParseJson(text, key));
  base::JsonReader reader(document, "answer");
  std::vector<T> values;
  const json* list = reader.Child(key);
  FL_RETURN_IF_ERROR(reader.status());
  FL_RETURN_IF_ERROR(Reader::ReadAll(*list, key, &values));
  return values;
}

template <typename T>
base::Result<T> ObjectFromJson(const char* what, std::string_view text) {
  FL_ASSIGN_OR_RETURN(const json document, base::ParseJson(text, what));
  T value;
  FL_RETURN_IF_ERROR(Reader::Read(document, what, &value));
  return value;
}

json ViewToJson(const JobView& view) {
  json object = json::parse(view.object, nullptr, false);
  object["status"] = Writer::Write(view.status);
  object["metadata"]["resourceVersion"] = std::to_string(view.revision);
  return object;
}

base::Result<JobView> ViewFromJson(json object) {
  JobView view;
  base::JsonReader reader(object, "job");
  const json* metadata = reader.Child("metadata");
  FL_RETURN_IF_ERROR(reader.status());
  std::string revision = "0";
  base::JsonReader metadata_reader(*metadata, "job.metadata");
  metadata_reader.Optional("resourceVersion", &revision);
  FL_RETURN_IF_ERROR(metadata_reader.status());
  view.revision = std::strtoull(revision.c_str(), nullptr, 10);
  if (reader.Has("status")) {
    FL_RETURN_IF_ERROR(Reader::Read(object["status"], "job.status", &view.status));
  }
  object.erase("status");
  object["metadata"].erase("resourceVersion");
  view.object = base::DumpJson(object);
  return view;
}

}  // namespace

bool JobStatus::Finished() const {
  for (const char* type : {"Succeeded", "Failed"}) {
    const Condition* condition = Find(type);
    if (condition != nullptr && condition->status) return true;
  }
  return false;
}

const Condition* JobStatus::Find(std::string_view type) const {
  for (const Condition& condition : conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

std::string ToJson(const JobStatus& status) { return base::DumpJson(Writer::Write(status)); }
std::string ToJson(const JobView& view) { return base::DumpJson(ViewToJson(view)); }
std::string ToJson(const AggregatorStatus& status) { return base::DumpJson(Writer::Write(status)); }
std::string RoundsToJson(const std::vector<RoundStatus>& rounds, uint64_t revision) {
  return ListToJson("rounds", rounds, revision);
}
std::string ClientsToJson(const std::vector<ClientStatus>& clients, uint64_t revision) {
  return ListToJson("clients", clients, revision);
}
std::string JobsToJson(const std::vector<JobView>& jobs, uint64_t revision) {
  json list = json::array();
  for (const JobView& view : jobs) list.push_back(ViewToJson(view));
  return base::DumpJson(json{{"jobs", std::move(list)}, {"revision", revision}});
}
std::string VersionsToJson(const std::vector<VersionStatus>& versions) {
  return ListToJson("versions", versions, std::nullopt);
}
std::string EventsToJson(const std::vector<JobEvent>& events) {
  return ListToJson("events", events, std::nullopt);
}

base::Result<JobStatus> JobStatusFromJson(std::string_view text) {
  return ObjectFromJson<JobStatus>("job status", text);
}
base::Result<JobView> JobViewFromJson(std::string_view text) {
  FL_ASSIGN_OR_RETURN(json document, base::ParseJson(text, "job"));
  return ViewFromJson(std::move(document));
}
base::Result<AggregatorStatus> AggregatorStatusFromJson(std::string_view text) {
  return ObjectFromJson<AggregatorStatus>("aggregator status", text);
}
base::Result<std::vector<RoundStatus>> RoundsFromJson(std::string_view text) {
  return ListFromJson<RoundStatus>("rounds", text);
}
base::Result<std::vector<ClientStatus>> ClientsFromJson(std::string_view text) {
  return ListFromJson<ClientStatus>("clients", text);
}
base::Result<std::vector<JobView>> JobsFromJson(std::string_view text) {
  FL_ASSIGN_OR_RETURN(const json document, base::ParseJson(text, "jobs"));
  base::JsonReader reader(document, "answer");
  const json* list = reader.Child("jobs");
  FL_RETURN_IF_ERROR(reader.status());
  if (!list->is_array()) return base::InvalidArgument("answer: \"jobs\" must be a list");
  std::vector<JobView> jobs;
  for (const json& item : *list) {
    FL_ASSIGN_OR_RETURN(JobView view, ViewFromJson(item));
    jobs.push_back(std::move(view));
  }
  return jobs;
}
base::Result<std::vector<VersionStatus>> VersionsFromJson(std::string_view text) {
  return ListFromJson<VersionStatus>("versions", text);
}
base::Result<std::vector<JobEvent>> EventsFromJson(std::string_view text) {
  return ListFromJson<JobEvent>("events", text);
}

}  // namespace fl::wire
