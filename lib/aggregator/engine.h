#pragma once

/// Runs the jobs of the model: looks at the state, does the next step, writes what came of it, and
/// waits for the next reason to look again. One thread runs it; long work (aggregating, evaluating,
/// publishing) is done without the lock, on copies and files that nothing else changes.

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "aggregator/core.h"
#include "base/thread_pool.h"
#include "strategy/aggregate/aggregate.h"

namespace fl::aggregator {

/// Evaluates the model file on the job's test dataset: metrics by name. The seam to the trainers.
using Evaluator = std::function<base::Result<std::map<std::string, double>>(
    const spec::FederatedLearningJob& job, const base::Path& model, std::stop_token stop)>;

struct EngineOptions {
  base::ThreadPool* pool = nullptr;  ///< for aggregation; null: this thread alone
  Evaluator evaluator;
  /// Wait before a step that failed for want of disk or network is tried again.
  base::Duration retry_delay = std::chrono::seconds(2);
};

class Engine {
 public:
  /// `core` outlives the engine.
  Engine(Core& core, EngineOptions options);

  /// Does all that can be done now. Returns when to call again at latest, if time matters. Tests
  /// call it themselves; Run is for programs.
  std::optional<base::Instant> Step(std::stop_token stop = {});
  /// Steps until `stop`.
  void Run(std::stop_token stop);

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// One step of the job; true where it may go on at once.
  base::Result<bool> Advance(JobEntry& job, Lock& lock, std::stop_token stop);
  base::Status StartJob(JobEntry& job);
  base::Result<bool> Select(JobEntry& job);
  base::Result<bool> Collect(JobEntry& job);
  base::Status PrepareCollecting(JobEntry& job);
  base::Status Aggregate(JobEntry& job, Lock& lock);
  /// Combines the updates in the spool into the candidate's files.
  base::Status WriteCandidate(JobEntry& job, Lock& lock, strategy::AggregateReport& report);
  /// True where the candidate's file is there, made again if a restart has removed it; false where
  /// its version is in the registry already.
  base::Result<bool> EnsureCandidate(JobEntry& job, Lock& lock);
  base::Result<bool> Evaluate(JobEntry& job, Lock& lock, std::stop_token stop);
  base::Status Publish(JobEntry& job, Lock& lock);
  base::Status Finish(JobEntry& job, const JobFinished& ending);

  /// The clients to choose from, once it is clear who is there; nothing while that is open.
  std::optional<std::vector<base::ClientName>> Candidates(const JobState& job);
  void StartClientEvaluation(JobEntry& job);
  /// Nobody waits for clients that have been away for long.
  void DropAbsentEvaluators();
  void HandleError(JobEntry& job, const base::Status& status);
  void WakeAt(base::Instant at);

  Core& core_;
  const EngineOptions options_;
  std::optional<base::Instant> wake_;
  std::optional<base::Instant> selecting_since_;
  std::optional<base::Instant> blocked_until_;
};

}  // namespace fl::aggregator
