#include "cli/internal/aggregator_target.h"

#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/internal/aggregator_client.h"
#include "spec/json.h"
#include "wire/paths.h"

namespace fl::cli::internal {
namespace {

using base::Result;
using nlohmann::json;

std::string WaitQuery(const char* key, uint64_t number, base::Duration wait) {
  const int64_t seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  return std::string("?") + key + "=" + std::to_string(number) + "&wait=" + std::to_string(seconds);
}

Result<ApplyResult> ReadApplyResult(const std::string& body) {
  FL_ASSIGN_OR_RETURN(const json answer, base::ParseJson(body, "answer of the aggregator"));
  base::JsonReader reader(answer, "answer of the aggregator");
  std::string result;
  reader.Required("result", &result);
  FL_RETURN_IF_ERROR(reader.status());
  for (const ApplyResult one :
       {ApplyResult::kCreated, ApplyResult::kConfigured, ApplyResult::kUnchanged}) {
    if (Name(one) == result) return one;
  }
  return base::Internal("answer of the aggregator: unknown result \"" + result + "\"");
}

/// The clients that administrators gave, and the revision of that list.
struct ClientObjects {
  std::map<std::string, spec::FederatedClient> clients;
  uint64_t revision = 0;
};

class AggregatorJobs final : public JobsClient {
 public:
  explicit AggregatorJobs(AggregatorClient client) : client_(std::move(client)) {}

  Result<std::vector<wire::JobView>> Jobs() override {
    FL_ASSIGN_OR_RETURN(const std::string body, client_.Call("GET", std::string(wire::kJobsPath)));
    return wire::JobsFromJson(body);
  }

  Result<wire::JobView> Job(const base::JobName& name) override {
    FL_ASSIGN_OR_RETURN(const std::string body, client_.Call("GET", wire::JobPath(name)));
    return wire::JobViewFromJson(body);
  }

  Result<wire::JobView> WaitForChange(const base::JobName& name, uint64_t since,
                                      base::Duration wait) override {
    FL_ASSIGN_OR_RETURN(
        const std::string body,
        client_.Call("GET", wire::JobPath(name) + WaitQuery("since", since, wait), "", wait));
    return wire::JobViewFromJson(body);
  }

  Result<std::vector<wire::RoundStatus>> Rounds(const base::JobName& name) override {
    FL_ASSIGN_OR_RETURN(const std::string body, client_.Call("GET", wire::JobRoundsPath(name)));
    return wire::RoundsFromJson(body);
  }

  Result<std::vector<wire::JobEvent>> Events(const base::JobName& name, uint64_t after,
                                             base::Duration wait) override {
    FL_ASSIGN_OR_RETURN(
        const std::string body,
        client_.Call("GET", wire::JobEventsPath(name) + WaitQuery("after", after, wait), "", wait));
    return wire::EventsFromJson(body);
  }

  Result<std::vector<ClientView>> Clients() override {
    FL_ASSIGN_OR_RETURN(const std::string body,
                        client_.Call("GET", std::string(wire::kClientsPath)));
    FL_ASSIGN_OR_RETURN(std::vector<wire::ClientStatus> statuses, wire::ClientsFromJson(body));
    FL_ASSIGN_OR_RETURN(ClientObjects objects, ReadClientObjects());
    std::vector<ClientView> views;
    for (wire::ClientStatus& status : statuses) {
      ClientView& view = views.emplace_back();
      const auto found = objects.clients.find(status.name);
      if (found != objects.clients.end()) view.object = std::move(found->second);
      view.status = std::move(status);
    }
    return views;
  }

  Result<ApplyResult> Apply(const spec::FederatedModel& model) override {
    FL_ASSIGN_OR_RETURN(const std::string body,
                        client_.Call("PUT", wire::ModelPath(base::ModelName(model.metadata.name)),
                                     spec::ToJson(model)));
    return ReadApplyResult(body);
  }

  Result<ApplyResult> Apply(const spec::FederatedLearningJob& job) override {
    FL_ASSIGN_OR_RETURN(
        const std::string body,
        client_.Call("PUT", wire::JobPath(base::JobName(job.metadata.name)), spec::ToJson(job)));
    return ReadApplyResult(body);
  }

  Result<std::vector<ApplyResult>> Apply(
      const std::vector<spec::FederatedClient>& clients) override {
    // The whole list is replaced under its next revision, so that of two administrators at once one
    // is told to read again.
    constexpr int kAttempts = 10;
    base::Status lost = base::Aborted("");
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      FL_ASSIGN_OR_RETURN(ClientObjects objects, ReadClientObjects());
      std::vector<ApplyResult> results;
      bool changed = false;
      for (const spec::FederatedClient& client : clients) {
        const auto [place, added] = objects.clients.try_emplace(client.metadata.name, client);
        ApplyResult result = added ? ApplyResult::kCreated : ApplyResult::kUnchanged;
        if (!added && spec::ToJson(place->second) != spec::ToJson(client)) {
          place->second = client;
          result = ApplyResult::kConfigured;
        }
        changed = changed || result != ApplyResult::kUnchanged;
        results.push_back(result);
      }
      if (!changed) return results;
      const base::Status put = PutClients(objects);
      if (put.ok()) return results;
      if (base::Describe(put.code()).http_status != 409) return put;
      lost = put;
    }
    return lost.WithContext("the list of clients keeps changing");
  }

  Result<wire::JobView> Act(const base::JobName& name, JobAction action) override {
    FL_ASSIGN_OR_RETURN(const std::string body,
                        client_.Call("POST", wire::JobActionPath(name, Name(action))));
    return wire::JobViewFromJson(body);
  }

 private:
  Result<ClientObjects> ReadClientObjects() {
    FL_ASSIGN_OR_RETURN(const std::string body,
                        client_.Call("GET", std::string(wire::kClientsPath) + "?objects=1"));
    FL_ASSIGN_OR_RETURN(const json answer, base::ParseJson(body, "clients"));
    base::JsonReader reader(answer, "clients");
    ClientObjects objects;
    reader.Required("revision", &objects.revision);
    const json* list = reader.Child("objects");
    FL_RETURN_IF_ERROR(reader.status());
    for (const json& item : *list) {
      FL_ASSIGN_OR_RETURN(spec::FederatedClient client,
                          spec::FromJson<spec::FederatedClient>(item.dump()));
      const std::string name = client.metadata.name;
      objects.clients.emplace(name, std::move(client));
    }
    return objects;
  }

  base::Status PutClients(const ClientObjects& objects) {
    std::string body = "{\"clients\":[";
    for (const auto& [name, client] : objects.clients) {
      if (body.back() != '[') body += ",";
      body += spec::ToJson(client);
    }
    body += "]}";
    return client_
        .Call("PUT",
              std::string(wire::kClientsPath) + "?revision=" + std::to_string(objects.revision + 1),
              std::move(body))
        .status();
  }

  AggregatorClient client_;
};

VersionView ToView(const wire::VersionStatus& status) {
  VersionView view;
  registry::VersionInfo& info = view.info;
  info.version = base::VersionNumber(status.version);
  info.manifest = base::Digest::Parse(status.digest).value_or(base::Digest());
  info.weights_size = status.size;
  if (status.parent) {
    info.parent = registry::VersionRef{base::VersionNumber(*status.parent), base::Digest()};
  }
  info.job = base::JobName(status.job);
  info.round = base::RoundNumber(status.round);
  info.algorithm = status.algorithm;
  info.contributors = status.contributors;
  info.metrics = status.metrics;
  info.created = base::ParseTime(status.created).value_or(base::Time());
  info.pruned = status.pruned;
  view.tags = status.tags;
  return view;
}

class AggregatorModels final : public ModelsClient {
 public:
  explicit AggregatorModels(AggregatorClient client) : client_(std::move(client)) {}

  Result<std::vector<ModelSummary>> Models() override {
    FL_ASSIGN_OR_RETURN(const wire::AggregatorStatus status, Status());
    std::vector<ModelSummary> models;
    if (status.model.empty()) return models;
    ModelSummary& model = models.emplace_back();
    model.name = base::ModelName(status.model);
    FL_ASSIGN_OR_RETURN(const std::vector<VersionView> versions, Versions(model.name));
    for (const VersionView& view : versions) {
      if (!view.info.pruned) ++model.versions;
      if (view.Has("latest")) {
        model.latest = view.info.version;
        model.updated = view.info.created;
      }
      if (view.Has("current")) {
        model.current = view.info.version;
        model.metrics = view.info.metrics;
      }
      if (view.Has("promoted")) model.promoted = view.info.version;
      if (view.Has("pinned")) model.pinned = view.info.version;
    }
    return models;
  }

  Result<std::vector<VersionView>> Versions(const base::ModelName& model) override {
    FL_ASSIGN_OR_RETURN(const std::string body,
                        client_.Call("GET", wire::ModelVersionsPath(model)));
    FL_ASSIGN_OR_RETURN(const std::vector<wire::VersionStatus> statuses,
                        wire::VersionsFromJson(body));
    std::vector<VersionView> views;
    for (const wire::VersionStatus& status : statuses) views.push_back(ToView(status));
    return views;
  }

  Result<VersionView> Version(const base::ModelName& model, const std::string& name) override {
    FL_ASSIGN_OR_RETURN(const std::vector<VersionView> versions, Versions(model));
    for (const VersionView& view : versions) {
      const std::string number = std::to_string(view.info.version.value());
      if (name == number || name == "v" + number || view.Has(name)) return view;
    }
    return base::NotFound("model \"" + model.str() + "\" has no version \"" + name + "\"");
  }

  Result<PinResult> Pin(const base::ModelName& model,
                        std::optional<base::VersionNumber> version) override {
    // Which version was current before is in the registry's records: the aggregator knows.
    const json body = version ? json{{"version", version->value()}} : json::object();
    return ReadPin(client_.Call("PUT", wire::ModelPinPath(model), body.dump()));
  }

  Result<PinResult> Unpin(const base::ModelName& model) override {
    return ReadPin(client_.Call("DELETE", wire::ModelPinPath(model)));
  }

  Result<registry::Change> Promote(const base::ModelName&, base::VersionNumber) override {
    return OnlyInRegistry("promote a version");
  }
  Result<registry::OpenedBlob> Weights(const base::ModelName&, base::VersionNumber) override {
    return OnlyInRegistry("read weights");
  }
  Result<std::optional<registry::OpenedBlob>> State(const base::ModelName&,
                                                    base::VersionNumber) override {
    return OnlyInRegistry("read a state");
  }
  Result<registry::VerifyReport> Verify(const base::ModelName&) override {
    return OnlyInRegistry("verify a model");
  }
  Result<registry::RetentionReport> Collect(const base::ModelName&,
                                            const registry::RetentionPolicy&) override {
    return OnlyInRegistry("remove versions");
  }
  Result<registry::VersionInfo> Publish(const base::ModelName&,
                                        const registry::PublishRequest&) override {
    return OnlyInRegistry("import a version");
  }

 private:
  Result<wire::AggregatorStatus> Status() {
    FL_ASSIGN_OR_RETURN(const std::string body,
                        client_.Call("GET", std::string(wire::kStatusPath)));
    return wire::AggregatorStatusFromJson(body);
  }

  base::Status OnlyInRegistry(const std::string& what) {
    const Result<wire::AggregatorStatus> status = Status();
    if (!status.ok()) return status.status();
    const std::string place = status->registry.empty() ? "URI" : status->registry;
    return base::Unimplemented("an aggregator does not " + what + " for its clients",
                               "ask its registry, on that machine: --registry " + place);
  }

  static Result<PinResult> ReadPin(const Result<std::string>& body) {
    FL_RETURN_IF_ERROR(body.status());
    FL_ASSIGN_OR_RETURN(const json answer, base::ParseJson(*body, "answer of the aggregator"));
    base::JsonReader reader(answer, "answer of the aggregator");
    std::string result;
    std::optional<int64_t> from;
    std::optional<int64_t> to;
    reader.Required("result", &result);
    reader.Optional("from", &from);
    reader.Optional("to", &to);
    FL_RETURN_IF_ERROR(reader.status());
    PinResult pin{.changed = result != "unchanged"};
    if (from) pin.from = base::VersionNumber(*from);
    if (to) pin.to = base::VersionNumber(*to);
    return pin;
  }

  AggregatorClient client_;
};

}  // namespace

Result<std::unique_ptr<JobsClient>> OpenAggregatorJobs(const Context& context,
                                                       const std::string& url) {
  FL_ASSIGN_OR_RETURN(AggregatorClient client, AggregatorClient::Create(context, url));
  return std::unique_ptr<JobsClient>(std::make_unique<AggregatorJobs>(std::move(client)));
}

Result<std::unique_ptr<ModelsClient>> OpenAggregatorModels(const Context& context,
                                                           const std::string& url) {
  FL_ASSIGN_OR_RETURN(AggregatorClient client, AggregatorClient::Create(context, url));
  return std::unique_ptr<ModelsClient>(std::make_unique<AggregatorModels>(std::move(client)));
}

Result<wire::AggregatorStatus> ReadAggregatorStatus(const Context& context,
                                                    const std::string& url) {
  FL_ASSIGN_OR_RETURN(AggregatorClient client, AggregatorClient::Create(context, url));
  FL_ASSIGN_OR_RETURN(const std::string body, client.Call("GET", std::string(wire::kStatusPath)));
  return wire::AggregatorStatusFromJson(body);
}

}  // namespace fl::cli::internal
