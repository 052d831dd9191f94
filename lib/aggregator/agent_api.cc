#include "aggregator/agent_api.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "aggregator/update_sink.h"
#include "base/json.h"
#include "obs/log.h"
#include "spec/validate.h"
#include "transport/serve_file.h"
#include "wire/paths.h"
#include "wire/session.h"

namespace fl::aggregator {
namespace {

using transport::Accept;
using transport::Buffered;
using transport::ErrorResponse;
using transport::JsonResponse;
using transport::RequestContext;
using transport::RequestHead;
using transport::Responder;
using transport::Response;

constexpr uint64_t kSmallBody = 64 << 10;
constexpr int64_t kMaxWaitSeconds = 60;
/// How much longer than the model's own an update's header may be.
constexpr uint64_t kHeaderSlack = 1 << 20;

base::Result<int64_t> Number(std::string_view text, std::string_view what) {
  if (text.empty() || text.size() > 15 ||
      text.find_first_not_of("0123456789") != std::string_view::npos) {
    return base::InvalidArgument(std::string(what) +
                                 " must be a whole number of at least 0, not \"" +
                                 std::string(text.substr(0, 40)) + "\"");
  }
  return std::strtoll(std::string(text).c_str(), nullptr, 10);
}

base::Result<int64_t> NumberHeader(const RequestHead& head, std::string_view name,
                                   int64_t fallback) {
  const auto text = head.headers.Get(name);
  return text ? Number(*text, name) : fallback;
}

/// A parameter that counts seconds, bounded.
base::Result<base::Duration> WaitParameter(const RequestHead& head) {
  const auto text = head.target.Parameter("wait");
  if (!text) return base::Duration(0);
  FL_ASSIGN_OR_RETURN(const int64_t seconds, Number(*text, "wait"));
  return base::Duration(std::chrono::seconds(std::min(seconds, kMaxWaitSeconds)));
}

base::Result<std::map<std::string, double>> MetricsHeader(const RequestHead& head) {
  const auto text = head.headers.Get(wire::kTrainMetrics);
  if (!text) return std::map<std::string, double>();
  FL_ASSIGN_OR_RETURN(const nlohmann::json metrics, base::ParseJson(*text, wire::kTrainMetrics));
  const nlohmann::json wrapped = {{"metrics", metrics}};
  base::JsonReader reader(wrapped, std::string(wire::kTrainMetrics));
  std::map<std::string, double> values;
  reader.Required("metrics", &values);
  FL_RETURN_IF_ERROR(reader.status());
  for (const auto& [name, value] : values) {
    if (!std::isfinite(value))
      return base::InvalidArgument("metric \"" + name + "\" is not finite");
  }
  return values;
}

/// The token after "Bearer ", "" where there is none.
std::string TokenOf(const RequestHead& head) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view value = head.headers.GetOr(wire::kAuthorization, "");
  return std::string(value.starts_with(kBearer) ? value.substr(kBearer.size()) : "");
}

/// Counts and metrics come where the job takes them, and only there.
base::Status CheckCounts(const JobState& job, const UpdateHead& update) {
  if (job.clients_send_metrics()) {
    if (update.samples) return base::OkStatus();
    return base::InvalidArgument("the header " + std::string(wire::kSamples) + " is missing",
                                 "send the number of samples that the update was trained on");
  }
  if (!update.samples && update.steps == 0 && update.metrics.empty()) return base::OkStatus();
  return base::InvalidArgument(
      "job \"" + job.name().str() +
          "\" keeps counts and metrics at its clients, and the update of \"" + update.client.str() +
          "\" came with some; nothing was kept",
      "leave " + std::string(wire::kSamples) + ", " + std::string(wire::kSteps) + " and " +
          std::string(wire::kTrainMetrics) + " out where the task says sendMetrics: false");
}

}  // namespace

Response SupersededResponse(Core& core, const std::string& token) {
  Response response = ErrorResponse(core.sessions.Authenticate(token).status());
  response.headers.Set(std::string(wire::kSessionState), std::string(wire::kSessionSuperseded));
  return response;
}

Response LateResponse(Core& core, const base::JobName& job, const base::Status& status) {
  Response response = ErrorResponse(status);
  JobEntry* entry = core.FindJob(job);
  if (status.code() != base::Code::kFailedPrecondition || entry == nullptr) return response;
  nlohmann::json body = nlohmann::json::parse(std::get<std::string>(response.body));
  const Round* current = entry->state.current();
  body["error"]["round"] =
      current != nullptr ? current->number.value() : entry->state.rounds_done();
  if (current != nullptr) body["error"]["attempt"] = current->attempt;
  response.body = base::DumpJson(body);
  return response;
}

std::optional<Accept> AgentApi::OnRequest(const RequestContext& context) {
  const RequestHead& head = context.head;
  const std::vector<std::string>& path = head.target.segments;
  if (path.size() == 2 && path[1] == "agents" && head.method == "POST") return OpenSession(context);
  if (path.size() == 4 && path[1] == "agents" && path[3] == "task" && head.method == "GET") {
    return PollTask(head);
  }
  if (path.size() == 7 && path[1] == "jobs" && path[3] == "rounds" && head.method == "PUT") {
    return PutInRound(head);
  }
  if (path.size() == 5 && path[1] == "jobs" && path[3] == "blobs" &&
      head.headers.Has(wire::kAuthorization)) {
    const base::Result<base::ClientName> client = Authenticate(head);
    if (!client.ok()) return Refuse(head, client.status());
    return ServeBlob(head, base::JobName(path[2]), path[4]);
  }
  return std::nullopt;
}

base::Result<base::ClientName> AgentApi::Authenticate(const RequestHead& head) {
  const std::string token = TokenOf(head);
  if (token.empty()) {
    return base::Unauthenticated("the request has no session",
                                 "open one with POST " + std::string(wire::kAgentsPath));
  }
  const std::lock_guard lock(core_.mutex);
  return core_.sessions.Authenticate(token);
}

base::Result<base::ClientName> AgentApi::AuthenticateAs(const RequestHead& head,
                                                        const std::string& name) {
  FL_ASSIGN_OR_RETURN(base::ClientName client, Authenticate(head));
  if (client.str() == name) return client;
  return base::PermissionDenied("the session is that of client \"" + client.str() +
                                "\", not of \"" + name + "\"");
}

Response AgentApi::Refuse(const RequestHead& head, const base::Status& status) {
  if (status.code() == base::Code::kUnauthenticated) {
    const std::lock_guard lock(core_.mutex);
    const std::string token = TokenOf(head);
    if (core_.sessions.IsSuperseded(token)) return SupersededResponse(core_, token);
  }
  return ErrorResponse(status);
}

Accept AgentApi::OpenSession(const RequestContext& context) {
  SessionProof proof{context.tls_exporter, context.client_certificate_name};
  return Buffered{kSmallBody,
                  [this, proof = std::move(proof)](std::string body, Responder responder) {
                    std::move(responder).Send(Session(body, proof));
                  }};
}

Response AgentApi::Session(const std::string& body, const SessionProof& proof) {
  const base::Result<wire::SessionRequest> request = wire::SessionRequestFromJson(body);
  if (!request.ok()) return ErrorResponse(request.status());
  const base::Status name = spec::CheckName(request->client.str(), "client name");
  if (!name.ok()) return ErrorResponse(name);

  const std::lock_guard lock(core_.mutex);
  const bool joins = request->join_token.has_value();
  std::optional<base::PublicKey> key = core_.catalog.KeyOf(request->client);
  if (joins && !key) {
    const base::Result<base::PublicKey> offered =
        base::PublicKey::ParseOpenSsh(request->public_key.value_or(""));
    if (!offered.ok()) return ErrorResponse(offered.status().WithContext("publicKey"));
    key = *offered;
  }
  if (!request->challenge && !proof.client_certificate_name) {
    Response response = JsonResponse(401, wire::ToJson(core_.sessions.NewChallenge()));
    response.headers.Set("WWW-Authenticate", "Fl-Signature");
    return response;
  }
  // Whoever cannot prove a key of theirs learns nothing about which clients there are.
  if (!core_.catalog.clients().contains(request->client)) {
    return ErrorResponse(base::PermissionDenied(
        "client \"" + request->client.str() + "\" is not known here",
        "an administrator registers it: fl submit -f CLIENT.yaml, with a FederatedClient of that "
        "name and this agent's publicKey"));
  }
  const base::Status proved = core_.sessions.CheckProof(*request, proof, key);
  if (proved.code() == base::Code::kUnauthenticated) {
    obs::Warning("session refused", {{"client", request->client}, {"why", proved.message()}});
    Response response = ErrorResponse(proved);
    return response;
  }
  if (!proved.ok()) return ErrorResponse(proved);
  if (joins && !core_.catalog.KeyOf(request->client)) {
    const base::Status bound = core_.catalog.BindKey(request->client, *request->join_token, *key);
    if (!bound.ok()) return ErrorResponse(bound);
  }
  const wire::Session session = core_.sessions.Open(request->client);
  Presence& presence = core_.presence[request->client];
  presence.software = request->software.substr(0, 100);
  presence.last_contact = core_.clock().Monotonic();
  presence.last_seen = core_.clock().Now();
  obs::Info("session opened", {{"client", request->client}, {"software", presence.software}});
  core_.task_polls.Sweep(core_.clock().Monotonic());  // a poll of the older session ends
  core_.Touch();
  return JsonResponse(200, wire::ToJson(session));
}

Accept AgentApi::PollTask(const RequestHead& head) {
  const base::Result<base::ClientName> client = AuthenticateAs(head, head.target.segments[2]);
  if (!client.ok()) return Refuse(head, client.status());
  const base::Result<base::Duration> wait = WaitParameter(head);
  if (!wait.ok()) return ErrorResponse(wait.status());
  std::string current(head.target.Parameter("current").value_or(""));
  std::string token = TokenOf(head);

  return Buffered{
      0, [this, client = *client, wait = *wait, current = std::move(current),
          token = std::move(token)](std::string, Responder responder) {
        const std::lock_guard lock(core_.mutex);
        const base::Instant now = core_.clock().Monotonic();
        Presence& presence = core_.presence[client];
        const bool was_there = core_.IsConnected(client);
        ++presence.polls;
        presence.last_contact = now;
        presence.last_seen = core_.clock().Now();
        const auto check = [this, client, current, token](bool expired) -> std::optional<Response> {
          const base::Result<base::ClientName> still = core_.sessions.Authenticate(token);
          if (!still.ok()) {
            return core_.sessions.IsSuperseded(token) ? SupersededResponse(core_, token)
                                                      : ErrorResponse(still.status());
          }
          const std::optional<wire::Task> task = core_.TaskFor(client);
          if (task && task->Key() != current) return JsonResponse(200, wire::ToJson(*task));
          Response nothing{.status = 204};
          if (!task && !current.empty()) {
            nothing.headers.Set(std::string(wire::kTaskState), std::string(wire::kTaskNone));
            return nothing;
          }
          return expired ? std::optional(nothing) : std::nullopt;
        };
        const auto left = [this, client] {
          Presence& known = core_.presence[client];
          --known.polls;
          known.last_contact = core_.clock().Monotonic();
          known.last_seen = core_.clock().Now();
        };
        core_.task_polls.Park(std::move(responder), now + wait, check, left,
                              [this] { core_.wakeup.Notify(); });
        if (!was_there) core_.Touch();
        core_.wakeup.Notify();  // for the deadline of this poll
      }};
}

Response AgentApi::ServeBlob(const RequestHead& head, const base::JobName& job,
                             const std::string& digest) {
  if (head.method != "GET" && head.method != "HEAD") {
    return ErrorResponse(base::InvalidArgument("blobs are read with GET"), 405);
  }
  const base::Result<base::Digest> wanted = base::Digest::Parse(digest);
  if (!wanted.ok()) return ErrorResponse(wanted.status());
  base::Path path;
  {
    const std::lock_guard lock(core_.mutex);
    const auto found = core_.served.find(*wanted);
    if (core_.FindJob(job) == nullptr || found == core_.served.end()) {
      return ErrorResponse(base::NotFound(
          "job \"" + job.str() + "\" does not serve blob " + wanted->ToString() + " now",
          "ask for the current task"));
    }
    path = found->second.path;
  }
  base::Result<transport::FileBody> file = transport::FileBody::Open(path);
  if (!file.ok()) return ErrorResponse(file.status());
  return transport::ServeFile(head, *std::move(file),
                              {.content_type = std::string(wire::kSafetensorsType),
                               .etag = wanted->ToString(),
                               .immutable = true});
}

Accept AgentApi::PutInRound(const RequestHead& head) {
  const std::vector<std::string>& path = head.target.segments;
  const base::Result<base::ClientName> client = AuthenticateAs(head, path[6]);
  if (!client.ok()) return Refuse(head, client.status());
  const base::Result<int64_t> round = Number(path[4], "round");
  if (!round.ok()) return ErrorResponse(round.status());
  const base::Result<int64_t> attempt = NumberHeader(head, wire::kAttempt, 0);
  if (!attempt.ok()) return ErrorResponse(attempt.status());
  const RoundCall call{base::JobName(path[2]), base::RoundNumber(*round), *attempt, *client,
                       TokenOf(head)};
  if (path[5] == "updates") return PutUpdate(head, call);
  if (path[5] == "evaluations") {
    return Buffered{kSmallBody, [this, call](std::string body, Responder responder) {
                      std::move(responder).Send(PutEvaluation(call, body));
                    }};
  }
  if (path[5] == "failures") {
    return Buffered{kSmallBody, [this, call](std::string body, Responder responder) {
                      std::move(responder).Send(PutFailure(call, body));
                    }};
  }
  return ErrorResponse(base::NotFound("no such path: " + head.target.path));
}

Accept AgentApi::PutUpdate(const RequestHead& head, const RoundCall& call) {
  UpdateHead update{call.job, call.round, call.attempt, call.client};
  update.session = call.session;
  if (!head.content_length) {
    return ErrorResponse(base::InvalidArgument("an update needs Content-Length"), 411);
  }
  update.size = *head.content_length;
  const base::Result<int64_t> steps = NumberHeader(head, wire::kSteps, 0);
  if (!steps.ok()) return ErrorResponse(steps.status());
  base::Result<std::map<std::string, double>> metrics = MetricsHeader(head);
  if (!metrics.ok()) return ErrorResponse(metrics.status());
  update.steps = *steps;
  update.metrics = *std::move(metrics);
  if (const auto samples = head.headers.Get(wire::kSamples)) {
    const base::Result<int64_t> count = Number(*samples, wire::kSamples);
    if (!count.ok()) return ErrorResponse(count.status());
    update.samples = *count;
  }
  if (const auto digest = head.headers.Get(wire::kReprDigest)) {
    const base::Result<base::Digest> parsed = base::Digest::ParseReprDigest(*digest);
    if (!parsed.ok()) return ErrorResponse(parsed.status());
    update.digest = *parsed;
  }

  std::shared_ptr<const tensor::Header> model;
  std::optional<base::Digest> accepted;
  {
    const std::lock_guard lock(core_.mutex);
    const base::Result<JobEntry*> job =
        core_.RequireCollecting(call.job, call.round, call.attempt, call.client);
    if (!job.ok()) return LateResponse(core_, call.job, job.status());
    const base::Status counts = CheckCounts((*job)->state, update);
    if (!counts.ok()) return ErrorResponse(counts);
    if (core_.served.empty()) {
      return ErrorResponse(base::Unavailable("the aggregator is still starting", "try again"));
    }
    const ServedModel& served = core_.served.begin()->second;
    if (update.size > served.size + kHeaderSlack) {
      return ErrorResponse(base::OutOfRange("an update of " + std::to_string(update.size) +
                                                " bytes is larger than the model of " +
                                                std::to_string(served.size) + " bytes allows",
                                            "send the tensors of the model, with their dtypes"));
    }
    model = served.header;
    const Participant& participant = (*job)->state.current()->participants.at(call.client);
    if (participant.state == Participant::State::kAccepted) {
      accepted = participant.update.digest;
      if (update.digest == accepted && !head.expects_continue && update.size <= kSmallBody) {
        // Known by its digest alone; the body is short enough to let it come.
        return Buffered{kSmallBody, [](std::string, Responder responder) {
                          std::move(responder).Send(JsonResponse(200, R"({"result":"unchanged"})"));
                        }};
      }
      if (update.digest == accepted && head.expects_continue) {
        return JsonResponse(200, R"({"result":"unchanged"})");
      }
    }
  }
  base::Result<std::unique_ptr<transport::BodySink>> sink =
      MakeUpdateSink(core_, std::move(update), std::move(model), accepted);
  if (!sink.ok()) return ErrorResponse(sink.status());
  return *std::move(sink);
}

Response AgentApi::PutEvaluation(const RoundCall& call, const std::string& body) {
  const base::Result<wire::EvaluationReport> report = wire::EvaluationReportFromJson(body);
  if (!report.ok()) return ErrorResponse(report.status());
  for (const auto& [name, value] : report->metrics) {
    if (!std::isfinite(value)) {
      return ErrorResponse(base::InvalidArgument("metric \"" + name + "\" is not finite"));
    }
  }
  const std::lock_guard lock(core_.mutex);
  if (core_.sessions.IsSuperseded(call.session)) return SupersededResponse(core_, call.session);
  std::optional<ClientEvaluation>& evaluation = core_.evaluation;
  if (!evaluation || evaluation->job != call.job || evaluation->round != call.round ||
      evaluation->attempt != report->attempt) {
    return LateResponse(core_, call.job,
                        base::FailedPrecondition("round " + std::to_string(call.round.value()) +
                                                 " takes no evaluations now"));
  }
  if (!evaluation->waiting.contains(call.client) && !evaluation->reports.contains(call.client)) {
    return ErrorResponse(
        base::PermissionDenied("client \"" + call.client.str() + "\" was not asked to evaluate"));
  }
  evaluation->waiting.erase(call.client);
  evaluation->reports[call.client] = *report;
  core_.Touch();
  return JsonResponse(200, R"({"result":"accepted"})");
}

Response AgentApi::PutFailure(const RoundCall& call, const std::string& body) {
  const base::Result<wire::FailureReport> report = wire::FailureReportFromJson(body);
  if (!report.ok()) return ErrorResponse(report.status());
  const std::lock_guard lock(core_.mutex);
  if (core_.sessions.IsSuperseded(call.session)) return SupersededResponse(core_, call.session);
  Presence& presence = core_.presence[call.client];
  if (report->kind == wire::TaskKind::kEvaluate) {
    if (core_.evaluation && core_.evaluation->job == call.job &&
        core_.evaluation->waiting.erase(call.client) > 0) {
      core_.evaluation->failures[call.client] = report->reason;
      core_.Touch();
    }
    presence.last_error = report->reason;
    return JsonResponse(200, R"({"result":"accepted"})");
  }
  const base::Result<JobEntry*> job =
      core_.RequireCollecting(call.job, call.round, report->attempt, call.client);
  if (!job.ok()) return LateResponse(core_, call.job, job.status());
  const Participant& participant = (*job)->state.current()->participants.at(call.client);
  if (participant.state == Participant::State::kTraining) {
    const base::Status noted = core_.Append(**job, ClientFailed{call.client, report->reason});
    if (!noted.ok()) return ErrorResponse(noted);
    ++presence.rejected;
  }
  presence.last_error = report->reason;
  return JsonResponse(200, R"({"result":"accepted"})");
}

}  // namespace fl::aggregator
