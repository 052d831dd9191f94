#include "aggregator/admin_api.h"

#include <array>
#include <nlohmann/json.hpp>

#include "aggregator/views.h"
#include "base/encoding.h"
#include "base/json.h"
#include "spec/defaults.h"
#include "spec/json.h"
#include "spec/validate.h"
#include "wire/paths.h"

namespace fl::aggregator {

using transport::Accept;
using transport::Buffered;
using transport::ErrorResponse;
using transport::JsonResponse;
using transport::RequestHead;
using transport::Responder;
using transport::Response;

namespace {

constexpr uint64_t kMaxBody = 4 << 20;
constexpr int64_t kMaxWaitSeconds = 60;

Response NoSuchPath(const RequestHead& head) {
  return ErrorResponse(base::NotFound("no such call: " + head.method + " " + head.target.path));
}

base::Result<int64_t> NumberParameter(const RequestHead& head, std::string_view name,
                                      int64_t fallback) {
  const auto text = head.target.Parameter(name);
  if (!text) return fallback;
  if (text->empty() || text->size() > 15 ||
      text->find_first_not_of("0123456789") != std::string_view::npos) {
    return base::InvalidArgument("?" + std::string(name) +
                                 "= must be a whole number of at least 0");
  }
  return std::strtoll(std::string(*text).c_str(), nullptr, 10);
}

}  // namespace

Response Immutable(const spec::Problems& problems) {
  return ErrorResponse(base::FailedPrecondition(spec::ToStatus(problems).message(),
                                                "use another name for another job or model"));
}

base::Status AdminApi::Authenticate(const RequestHead& head) const {
  const auto token = head.headers.Get(wire::kAdminToken);
  if (!token) {
    return base::Unauthenticated("this call needs the administrator's token",
                                 "give it with --token-file or FL_TOKEN_FILE");
  }
  if (base::ConstantTimeEqual(*token, token_)) return base::OkStatus();
  return base::PermissionDenied("the administrator's token is wrong",
                                "check --token-file or FL_TOKEN_FILE");
}

Accept AdminApi::WithBody(Work work) {
  return Buffered{kMaxBody, [work = std::move(work)](std::string body, Responder responder) {
                    std::move(responder).Send(work(body));
                  }};
}

Accept AdminApi::Watch(const RequestHead& head, std::function<Response()> make) {
  const base::Result<int64_t> since = NumberParameter(head, "since", -1);
  if (!since.ok()) return ErrorResponse(since.status());
  const base::Result<int64_t> wait = NumberParameter(head, "wait", 0);
  if (!wait.ok()) return ErrorResponse(wait.status());
  return Buffered{0, [this, since = *since, wait = std::min(*wait, kMaxWaitSeconds),
                      make = std::move(make)](std::string, Responder responder) {
                    const std::lock_guard lock(core_.mutex);
                    const auto check = [this, since,
                                        make](bool expired) -> std::optional<Response> {
                      if (!expired && static_cast<int64_t>(core_.revision) <= since) {
                        return std::nullopt;
                      }
                      return make();
                    };
                    core_.watchers.Park(
                        std::move(responder),
                        core_.clock().Monotonic() + base::Duration(std::chrono::seconds(wait)),
                        check, [] {}, [this] { core_.wakeup.Notify(); });
                    core_.wakeup.Notify();
                  }};
}

Accept AdminApi::OnRequest(const RequestHead& head) {
  const base::Status allowed = Authenticate(head);
  if (!allowed.ok()) return ErrorResponse(allowed);
  const std::vector<std::string>& path = head.target.segments;
  if (path.size() < 2 || path[0] != "v1") return NoSuchPath(head);
  if (path[1] == "status" && path.size() == 2 && head.method == "GET") {
    return Watch(head,
                 [this] { return JsonResponse(200, wire::ToJson(MakeAggregatorStatus(core_))); });
  }
  if (path[1] == "jobs") return Jobs(head);
  if (path[1] == "clients") return Clients(head);
  if (path[1] == "models") return Models(head);
  return NoSuchPath(head);
}

Accept AdminApi::Jobs(const RequestHead& head) {
  const std::vector<std::string>& path = head.target.segments;
  if (path.size() == 2 && head.method == "GET") {
    return Watch(head, [this] {
      std::vector<wire::JobView> views;
      for (const base::JobName& name : core_.catalog.jobs()) {
        if (const JobEntry* job = core_.FindJob(name)) {
          views.push_back(MakeJobView(core_, *job, core_.ActiveJob()));
        }
      }
      return JsonResponse(200, wire::JobsToJson(views, core_.revision));
    });
  }
  if (path.size() < 3) return NoSuchPath(head);
  const base::JobName name(path[2]);
  if (path.size() == 3) {
    if (head.method == "GET") return Watch(head, [this, name] { return GetJob(name); });
    if (head.method == "PUT") {
      return WithBody([this, name](const std::string& body) { return PutJob(name, body); });
    }
    if (head.method == "DELETE") {
      return WithBody([this, name](const std::string&) { return DeleteJob(name); });
    }
  }
  if (path.size() == 4 && head.method == "POST") {
    return WithBody(
        [this, name, action = path[3]](const std::string&) { return ActOnJob(name, action); });
  }
  if (path.size() == 4 && head.method == "GET" && path[3] == "rounds") {
    return Watch(head, [this, name]() -> Response {
      const JobEntry* job = core_.FindJob(name);
      if (job == nullptr) return GetJob(name);
      std::vector<wire::RoundStatus> rounds;
      for (const Round& round : job->state.rounds()) {
        rounds.push_back(MakeRoundStatus(core_, round, true));
      }
      return JsonResponse(200, wire::RoundsToJson(rounds, core_.revision));
    });
  }
  if (path.size() == 4 && head.method == "GET" && path[3] == "events") return JobEvents(head, name);
  if (path.size() == 5 && path[3] == "blobs") return agents_.ServeBlob(head, name, path[4]);
  return NoSuchPath(head);
}

Accept AdminApi::Clients(const RequestHead& head) {
  const std::vector<std::string>& path = head.target.segments;
  if (path.size() == 2 && head.method == "GET") {
    if (head.target.Parameter("objects")) {
      return Watch(head, [this] {
        nlohmann::json objects = nlohmann::json::array();
        for (const auto& [name, client] : core_.catalog.clients()) {
          objects.push_back(nlohmann::json::parse(spec::ToJson(client)));
        }
        return JsonResponse(
            200, base::DumpJson(nlohmann::json{{"objects", std::move(objects)},
                                               {"revision", core_.catalog.clients_revision()}}));
      });
    }
    return Watch(head, [this] {
      return JsonResponse(200, wire::ClientsToJson(MakeClientStatuses(core_), core_.revision));
    });
  }
  if (path.size() == 2 && head.method == "PUT") {
    const base::Result<int64_t> revision = NumberParameter(head, "revision", -1);
    if (!revision.ok()) return ErrorResponse(revision.status());
    return WithBody([this, revision = *revision](const std::string& body) {
      return PutClients(revision, body);
    });
  }
  if (path.size() == 4 && path[3] == "join-token" && head.method == "POST") {
    return WithBody(
        [this, name = base::ClientName(path[2])](const std::string&) { return JoinToken(name); });
  }
  return NoSuchPath(head);
}

Accept AdminApi::Models(const RequestHead& head) {
  const std::vector<std::string>& path = head.target.segments;
  if (path.size() < 3) return NoSuchPath(head);
  const base::ModelName name(path[2]);
  if (path.size() == 3 && head.method == "PUT") {
    return WithBody([this, name](const std::string& body) { return PutModel(name, body); });
  }
  if (path.size() == 4 && path[3] == "versions" && head.method == "GET") {
    return WithBody([this, name](const std::string&) { return Versions(name); });
  }
  if (path.size() == 4 && path[3] == "pin" && head.method == "DELETE") {
    return WithBody([this, name](const std::string&) { return Pin(name, std::nullopt); });
  }
  if (path.size() == 4 && path[3] == "pin" && head.method == "PUT") {
    return WithBody([this, name](const std::string& body) {
      const base::Result<nlohmann::json> json = base::ParseJson(body, "pin");
      if (!json.ok()) return ErrorResponse(json.status());
      base::JsonReader reader(*json, "pin");
      std::optional<int64_t> version;
      reader.Optional("version", &version);
      if (!reader.status().ok()) return ErrorResponse(reader.status());
      if (version) return Pin(name, base::VersionNumber(*version));
      return PinPrevious(name);
    });
  }
  return NoSuchPath(head);
}

Response AdminApi::PutClients(int64_t revision, const std::string& body) {
  const base::Result<nlohmann::json> json = base::ParseJson(body, "clients");
  if (!json.ok()) return ErrorResponse(json.status());
  if (!json->is_object() || !json->contains("clients") || !(*json)["clients"].is_array()) {
    return ErrorResponse(
        base::InvalidArgument("the body must be {\"clients\": [FederatedClient, …]}"));
  }
  std::vector<spec::FederatedClient> clients;
  for (const nlohmann::json& item : (*json)["clients"]) {
    base::Result<spec::FederatedClient> client =
        spec::FromJson<spec::FederatedClient>(base::DumpJson(item));
    if (!client.ok()) return ErrorResponse(client.status());
    clients.push_back(*std::move(client));
  }
  const std::lock_guard lock(core_.mutex);
  if (revision < 0) revision = core_.catalog.clients_revision() + 1;  // whatever is there
  const base::Status set = core_.catalog.SetClients(revision, clients);
  if (!set.ok()) return ErrorResponse(set);
  for (const auto& [name, presence] : core_.presence) {
    if (!core_.catalog.clients().contains(name)) core_.sessions.Close(name);
  }
  core_.Touch();
  return JsonResponse(200,
                      base::DumpJson(nlohmann::json{{"revision", core_.catalog.clients_revision()},
                                                    {"clients", core_.catalog.clients().size()}}));
}

Response AdminApi::JoinToken(const base::ClientName& name) {
  const std::lock_guard lock(core_.mutex);
  std::array<uint8_t, 24> bytes;
  core_.options.random->Fill(bytes);
  const std::string token = base::HexEncode(bytes);
  const base::Status added = core_.catalog.AddJoinToken(name, base::Digest::Of(token));
  if (!added.ok()) return ErrorResponse(added);
  return JsonResponse(201, base::DumpJson(nlohmann::json{{"joinToken", token}}));
}

base::Result<registry::ModelRepository*> AdminApi::Repository(const base::ModelName& name) {
  const std::lock_guard lock(core_.mutex);
  if (core_.repository == nullptr || core_.catalog.model()->metadata.name != name.str()) {
    return base::NotFound("this aggregator does not serve model \"" + name.str() + "\"");
  }
  return core_.repository.get();
}

Response AdminApi::PutModel(const base::ModelName& name, const std::string& body) {
  base::Result<spec::FederatedModel> model = spec::FromJson<spec::FederatedModel>(body);
  if (!model.ok()) return ErrorResponse(model.status());
  if (model->metadata.name != name.str()) {
    return ErrorResponse(base::InvalidArgument("the object is model \"" + model->metadata.name +
                                               "\", the path says \"" + name.str() + "\""));
  }
  spec::ApplyDefaults(*model);
  const std::lock_guard lock(core_.mutex);
  const std::optional<spec::FederatedModel>& known = core_.catalog.model();
  std::string result = "created";
  if (known) {
    if (known->metadata.name != name.str()) {
      return ErrorResponse(
          base::FailedPrecondition("this aggregator serves model \"" + known->metadata.name + "\"",
                                   "start another aggregator for model \"" + name.str() + "\""));
    }
    const spec::Problems problems = spec::ValidateUpdate(*known, *model);
    if (!problems.empty()) return Immutable(problems);
    result = *known == *model ? "unchanged" : "configured";
  }
  const base::Status adopted = core_.AdoptModel(*model);
  if (!adopted.ok()) return ErrorResponse(adopted);
  const base::Status set = core_.catalog.SetModel(*model);
  if (!set.ok()) return ErrorResponse(set);
  core_.Touch();
  return JsonResponse(result == "created" ? 201 : 200,
                      base::DumpJson(nlohmann::json{{"result", result}}));
}

Response AdminApi::PinPrevious(const base::ModelName& name) {
  const base::Result<registry::ModelRepository*> repository = Repository(name);
  if (!repository.ok()) return ErrorResponse(repository.status());
  const base::Result<registry::VersionInfo> previous = (*repository)->PreviousCurrent();
  if (!previous.ok()) return ErrorResponse(previous.status());
  return Pin(name, previous->version);
}

Response AdminApi::Pin(const base::ModelName& name, std::optional<base::VersionNumber> version) {
  const base::Result<registry::ModelRepository*> repository = Repository(name);
  if (!repository.ok()) return ErrorResponse(repository.status());
  const base::Result<registry::VersionInfo> before = (*repository)->Current();
  if (!before.ok()) return ErrorResponse(before.status());
  // Rolling back to what is current changes nothing.
  const bool already = version == before->version;
  const base::Result<registry::Change> change = already   ? registry::Change::kAlreadySo
                                                : version ? (*repository)->Pin(*version)
                                                          : (*repository)->Unpin();
  if (!change.ok()) return ErrorResponse(change.status());
  const base::Result<registry::VersionInfo> after = (*repository)->Current();
  if (!after.ok()) return ErrorResponse(after.status());
  const std::lock_guard lock(core_.mutex);
  core_.Touch();
  const char* made = version ? "pinned" : "unpinned";
  return JsonResponse(200, base::DumpJson(nlohmann::json{
                               {"result", *change == registry::Change::kMade ? made : "unchanged"},
                               {"from", before->version.value()},
                               {"to", after->version.value()}}));
}

Response AdminApi::Versions(const base::ModelName& name) {
  const base::Result<registry::ModelRepository*> repository = Repository(name);
  if (!repository.ok()) return ErrorResponse(repository.status());
  const base::Result<std::vector<wire::VersionStatus>> versions = MakeVersionStatuses(**repository);
  if (!versions.ok()) return ErrorResponse(versions.status());
  return JsonResponse(200, wire::VersionsToJson(*versions));
}

}  // namespace fl::aggregator
