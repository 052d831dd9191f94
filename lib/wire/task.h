#pragma once

/// What an agent is asked to do, and what it answers besides the update itself (whose body is raw
/// safetensors, see paths.h for its headers).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "base/ids.h"
#include "base/status.h"

namespace fl::wire {

enum class TaskKind { kTrain, kEvaluate };

/// The answer to GET /v1/agents/{client}/task (204 where there is none).
struct Task {
  TaskKind kind = TaskKind::kTrain;
  base::JobName job;
  base::RoundNumber round;
  int64_t attempt = 0;                         ///< of the round, from 0
  double deadline_seconds = 0;                 ///< until the round closes
  uint64_t seed = 0;                           ///< for this client, round and attempt
  base::Digest model;                          ///< blob to start from
  uint64_t model_size = 0;                     ///< bytes
  std::optional<std::string> builtin_trainer;  ///< "softmax", "mlp"
  std::optional<std::string> named_trainer;    ///< looked up in the agent's own configuration
  std::string config = "{}";                   ///< JSON object for the trainer
  double mu = 0;                               ///< FedProx' proximal term
  /// False under privacy: an update comes without Fl-Samples, Fl-Steps and Fl-Metrics, and weighs
  /// as much as any other; nothing is evaluated.
  bool send_metrics = true;

  /// "train digits round 3 attempt 0": the same for a task that is handed out again.
  std::string Key() const;
};

/// PUT …/evaluations/{client}: metrics of the candidate on the client's data.
struct EvaluationReport {
  int64_t attempt = 0;
  int64_t samples = 0;
  std::map<std::string, double> metrics;
};

/// PUT …/failures/{client}: the client gives this round up, and why.
struct FailureReport {
  TaskKind kind = TaskKind::kTrain;
  int64_t attempt = 0;
  std::string reason;
};

std::string_view Name(TaskKind kind);

std::string ToJson(const Task& task);
std::string ToJson(const EvaluationReport& report);
std::string ToJson(const FailureReport& report);
base::Result<Task> TaskFromJson(std::string_view text);
/// Also refuses negative samples.
base::Result<EvaluationReport> EvaluationReportFromJson(std::string_view text);
base::Result<FailureReport> FailureReportFromJson(std::string_view text);

}  // namespace fl::wire
