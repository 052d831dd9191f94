// The administrators' calls on jobs.

#include <nlohmann/json.hpp>

#include "aggregator/admin_api.h"
#include "aggregator/views.h"
#include "base/json.h"
#include "spec/config_digest.h"
#include "spec/defaults.h"
#include "spec/json.h"
#include "spec/validate.h"
#include "strategy/aggregate/rule.h"

namespace fl::aggregator {

using transport::Accept;
using transport::ErrorResponse;
using transport::JsonResponse;
using transport::RequestHead;
using transport::Response;

namespace {

Response NoSuchJob(const base::JobName& name) {
  return ErrorResponse(base::NotFound("no job \"" + name.str() + "\""));
}

/// What this version of the aggregator cannot do is refused, never left out in silence.
base::Status CheckOffered(const spec::FederatedLearningJob& job) {
  const spec::JobSpec& spec = job.spec;
  if (spec.privacy.secure_aggregation) {
    return base::Unimplemented("spec.privacy.secureAggregation is not offered by this version",
                               "the job was not taken: nothing runs with less privacy than asked");
  }
  if (spec.privacy.differential_privacy) {
    return base::Unimplemented("spec.privacy.differentialPrivacy is not offered by this version",
                               "the job was not taken: nothing runs with less privacy than asked");
  }
  const base::Status rule = strategy::MakeRule({spec.aggregation.algorithm.value_or("FedAvg"),
                                                spec.aggregation.parameters})
                                .status();
  return rule.ok() ? rule : rule.WithContext("spec.aggregation");
}

}  // namespace

Response AdminApi::GetJob(const base::JobName& name) {
  const JobEntry* job = core_.FindJob(name);
  if (job == nullptr) return NoSuchJob(name);
  return JsonResponse(200, wire::ToJson(MakeJobView(core_, *job, core_.ActiveJob())));
}

base::Status AdminApi::Configure(JobEntry& job, const spec::FederatedLearningJob& object) {
  JobConfigured event;
  event.object = spec::ToJson(object);
  event.config_digest = spec::ConfigDigest(object);
  const std::optional<int64_t> seed = object.spec.selection.seed;
  event.seed = seed                                  ? static_cast<uint64_t>(*seed)
               : job.state.created() == base::Time() ? core_.options.random->Uint64() >> 11
                                                     : job.state.seed();
  return core_.Append(job, std::move(event));
}

Response AdminApi::PutJob(const base::JobName& name, const std::string& body) {
  base::Result<spec::FederatedLearningJob> object =
      spec::FromJson<spec::FederatedLearningJob>(body);
  if (!object.ok()) return ErrorResponse(object.status());
  if (object->metadata.name != name.str()) {
    return ErrorResponse(base::InvalidArgument("the object is job \"" + object->metadata.name +
                                               "\", the path says \"" + name.str() + "\""));
  }
  spec::ApplyDefaults(*object);
  const base::Status offered = CheckOffered(*object);
  if (!offered.ok()) return ErrorResponse(offered);

  const std::lock_guard lock(core_.mutex);
  const std::optional<spec::FederatedModel>& model = core_.catalog.model();
  if (!model || model->metadata.name != object->spec.model_ref.name) {
    return ErrorResponse(base::FailedPrecondition(
        "the job trains model \"" + object->spec.model_ref.name + "\", and this aggregator " +
            (model ? "serves \"" + model->metadata.name + "\"" : "has no model yet"),
        "submit the FederatedModel first"));
  }
  JobEntry* job = core_.FindJob(name);
  std::string result = "created";
  if (job != nullptr) {
    const spec::FederatedLearningJob& before = job->state.object();
    if (before == *object) {
      return JsonResponse(200, R"({"result":"unchanged"})");
    }
    const spec::Problems problems = spec::ValidateUpdate(before, *object);
    if (!problems.empty()) return Immutable(problems);
    result = "configured";
  } else {
    const base::Result<JobEntry*> made = core_.MakeJob(name);
    if (!made.ok()) return ErrorResponse(made.status());
    job = *made;
  }
  const base::Status configured = Configure(*job, *object);
  if (!configured.ok()) return ErrorResponse(configured);
  return JsonResponse(result == "created" ? 201 : 200,
                      base::DumpJson(nlohmann::json{{"result", result}}));
}

Response AdminApi::DeleteJob(const base::JobName& name) {
  const std::lock_guard lock(core_.mutex);
  JobEntry* job = core_.FindJob(name);
  if (job == nullptr) return NoSuchJob(name);
  if (job->state.finished()) {
    const base::Status forgotten = core_.ForgetJob(name);
    if (!forgotten.ok()) return ErrorResponse(forgotten);
    return JsonResponse(200, R"({"result":"deleted"})");
  }
  spec::FederatedLearningJob object = job->state.object();
  object.spec.aborted = true;
  const base::Status aborted = Configure(*job, object);
  if (!aborted.ok()) return ErrorResponse(aborted);
  job->forget_when_finished = true;
  core_.Touch();
  return JsonResponse(202, R"({"result":"deleting"})");
}

Response AdminApi::ActOnJob(const base::JobName& name, const std::string& action) {
  const std::lock_guard lock(core_.mutex);
  JobEntry* job = core_.FindJob(name);
  if (job == nullptr) return NoSuchJob(name);
  spec::FederatedLearningJob object = job->state.object();
  const std::optional<JobFinished>& finished = job->state.finished();
  const auto refuse = [&](const std::string& why) {
    return ErrorResponse(
        base::FailedPrecondition("cannot " + action + " job \"" + name.str() + "\": " + why));
  };
  const std::string ending = finished ? "it has finished (" + finished->reason + ")" : "";
  if (action == "pause" || action == "resume" || action == "abort") {
    if (finished) return refuse(ending);
    if (action == "abort") {
      object.spec.aborted = true;
    } else {
      object.spec.suspend = action == "pause";
    }
  } else if (action == "retry") {
    if (!finished) return refuse("it is still running");
    if (finished->succeeded) return refuse("it has succeeded");
    if (object.spec.aborted) return refuse("it was aborted for good; submit it under a new name");
    ++object.spec.attempt;
  } else {
    return ErrorResponse(
        base::NotFound("no such action: " + action, "one of pause, resume, abort, retry"));
  }
  if (object != job->state.object()) {
    const base::Status configured = Configure(*job, object);
    if (!configured.ok()) return ErrorResponse(configured);
  }
  return GetJob(name);
}

Accept AdminApi::JobEvents(const RequestHead& head, const base::JobName& name) {
  const std::string after_text(head.target.Parameter("after").value_or("0"));
  const uint64_t after = std::strtoull(after_text.c_str(), nullptr, 10);
  const std::string wait_text(head.target.Parameter("wait").value_or("0"));
  const auto wait =
      std::chrono::seconds(std::min(60UL, std::strtoul(wait_text.c_str(), nullptr, 10)));
  return transport::Buffered{
      0, [this, name, after, wait](std::string, transport::Responder responder) {
        const std::lock_guard lock(core_.mutex);
        const auto check = [this, name, after](bool expired) -> std::optional<Response> {
          const JobEntry* job = core_.FindJob(name);
          if (job == nullptr) return NoSuchJob(name);
          std::vector<wire::JobEvent> lines;
          for (const wire::JobEvent& line : job->log) {
            if (line.sequence > after) lines.push_back(line);
          }
          // Nothing follows the end of a job.
          if (lines.empty() && !expired && !job->state.finished()) return std::nullopt;
          return JsonResponse(200, wire::EventsToJson(lines));
        };
        core_.watchers.Park(
            std::move(responder), core_.clock().Monotonic() + wait, check, [] {},
            [this] { core_.wakeup.Notify(); });
        core_.wakeup.Notify();
      }};
}

}  // namespace fl::aggregator
