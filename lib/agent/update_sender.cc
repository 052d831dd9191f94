#include "agent/update_sender.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "obs/log.h"
#include "wire/paths.h"

namespace fl::agent {
namespace {

using base::Result;
using transport::ClientRequest;
using transport::ClientResponse;

constexpr uint64_t kExpectContinueBytes = uint64_t{1} << 20;
/// A server takes 32 KiB of header fields; metrics get a part of that.
constexpr size_t kMetricsBytes = 16 << 10;
/// A connection that moves nothing for so long is given up and made anew.
constexpr base::Duration kStallTimeout = std::chrono::seconds(60);

/// JSON text in ASCII, as header fields need it.
std::string AsciiJson(const std::map<std::string, double>& metrics) {
  return nlohmann::json(metrics).dump(-1, ' ', /*ensure_ascii=*/true,
                                      nlohmann::json::error_handler_t::replace);
}

/// What fits of `metrics`, by name.
std::map<std::string, double> Bounded(const std::map<std::string, double>& metrics) {
  std::map<std::string, double> kept;
  size_t size = 0;
  for (const auto& [name, value] : metrics) {
    size += AsciiJson({{name, value}}).size();
    if (size > kMetricsBytes) {
      obs::Warning("the trainer reports more metrics than a message takes; some were left out",
                   {{"sent", kept.size()}, {"reported", metrics.size()}});
      break;
    }
    kept[name] = value;
  }
  return kept;
}

ClientRequest JsonRequest(std::string json) {
  ClientRequest request;
  request.headers.Set("Content-Type", std::string(wire::kJsonType));
  request.body = std::move(json);
  return request;
}

Delivery FromAnswer(const ClientResponse& response) {
  base::Status status = response.ToStatus();
  if (status.ok()) return {};
  const bool late = response.status == 409;
  return {late ? Delivery::Kind::kLate : Delivery::Kind::kRefused, std::move(status)};
}

}  // namespace

Result<Delivery> UpdateSender::SendUpdate(const wire::Task& task, const FinishedUpdate& update,
                                          const base::Path& weights, const TaskStop& stop) {
  ClientRequest request;
  request.headers.Set("Content-Type", std::string(wire::kSafetensorsType));
  request.headers.Set(std::string(wire::kAttempt), std::to_string(task.attempt));
  request.headers.Set(std::string(wire::kReprDigest), update.digest.ToReprDigest());
  if (task.send_metrics) {
    request.headers.Set(std::string(wire::kSamples), std::to_string(update.samples));
    if (update.steps > 0) {
      request.headers.Set(std::string(wire::kSteps), std::to_string(update.steps));
    }
    if (!update.metrics.empty()) {
      request.headers.Set(std::string(wire::kTrainMetrics), AsciiJson(Bounded(update.metrics)));
    }
  }
  request.body = transport::FileUpload{.path = weights};
  request.expect_continue = update.size > kExpectContinueBytes;
  return Put(wire::UpdatePath(task.job, task.round, session_.client()), std::move(request), stop);
}

Result<Delivery> UpdateSender::SendEvaluation(const wire::Task& task, wire::EvaluationReport report,
                                              const TaskStop& stop) {
  report.metrics = Bounded(report.metrics);
  return Put(wire::EvaluationPath(task.job, task.round, session_.client()),
             JsonRequest(wire::ToJson(report)), stop);
}

Result<Delivery> UpdateSender::SendFailure(const wire::Task& task, std::string reason,
                                           const TaskStop& stop) {
  const wire::FailureReport report{
      .kind = task.kind, .attempt = task.attempt, .reason = std::move(reason)};
  return Put(wire::FailurePath(task.job, task.round, session_.client()),
             JsonRequest(wire::ToJson(report)), stop);
}

Result<Delivery> UpdateSender::Put(const std::string& path, ClientRequest request,
                                   const TaskStop& stop) {
  request.method = "PUT";
  request.url = path;
  request.stall_timeout = kStallTimeout;
  request.stop = stop.now;
  FL_ASSIGN_OR_RETURN(const ClientResponse response,
                      SendUntilAnswered(session_, seams_, stop.withdrawn,
                                        [&request]() -> Result<ClientRequest> { return request; }));
  return FromAnswer(response);
}

}  // namespace fl::agent
