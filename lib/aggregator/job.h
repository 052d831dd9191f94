#pragma once

/// A job's state as the fold of its events, and the decisions that follow from it. Pure: no clock,
/// no I/O, no threads. The engine asks `Next` what to do, does it, and writes what came of it as an
/// event.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/events.h"
#include "base/ids.h"
#include "base/status.h"
#include "spec/job.h"

namespace fl::aggregator {

/// What a client of the cohort did so far.
struct Participant {
  enum class State { kTraining, kAccepted, kRejected };
  State state = State::kTraining;
  std::string reason;     ///< of a rejection
  UpdateAccepted update;  ///< where accepted
};

enum class RoundPhase {
  kCollecting,
  kAggregating,
  kEvaluating,
  kPublishing,
  kDone,
  kMissed,
};
/// "Collecting", …
std::string_view Name(RoundPhase phase);

/// A round, running or over.
struct Round {
  base::RoundNumber number;
  int64_t attempt = 0;
  RoundPhase phase = RoundPhase::kCollecting;
  base::VersionNumber from;
  base::Time start;
  base::Time end;
  std::map<base::ClientName, Participant> participants;
  std::optional<RoundAggregated> candidate;
  std::map<std::string, double> metrics;
  std::optional<base::VersionNumber> version;
  std::string message;
  // Kept when the participants of an old round are dropped.
  int64_t selected = 0;
  int64_t accepted = 0;
  int64_t rejected = 0;

  int64_t waiting_for() const { return selected - accepted - rejected; }
};

/// What a collecting round does next.
struct CollectDecision {
  enum class Action { kWait, kClose, kMiss };
  Action action = Action::kWait;
  std::string reason;
};

/// Closes when all have answered and the quorum is there, or at the deadline with the quorum;
/// misses as soon as the quorum cannot be reached any more, or at the deadline without it.
CollectDecision Decide(const Round& round, int64_t quorum, bool deadline_passed);

/// Whether metrics so far end the job early.
struct ConvergenceDecision {
  bool converged = false;
  std::string message;
};
/// `history`: the metric of each published round, oldest first.
ConvergenceDecision Decide(const spec::Convergence& convergence,
                           const std::vector<double>& history);

/// What the engine has to do for a job.
enum class Step {
  kNothing,  ///< finished, or suspended
  kStart,    ///< freeze the base version
  kSelect,   ///< draw the next cohort
  kCollect,  ///< wait for updates, then close or miss
  kAggregate,
  kEvaluate,
  kPublish,
  kFinish,  ///< `finish` says how
};

class JobState {
 public:
  /// Whether the event can follow what came before: kDataLoss where not.
  base::Status Check(const Event& event) const;
  /// Check, then folds the event in.
  base::Status Apply(const Event& event);

  Step Next() const;
  /// How the job ends, where Next is kFinish.
  JobFinished Ending() const;

  const spec::FederatedLearningJob& object() const { return object_; }
  base::JobName name() const { return base::JobName(object_.metadata.name); }
  const base::Digest& config_digest() const { return config_digest_; }
  uint64_t seed() const { return seed_; }
  const std::optional<base::VersionNumber>& base_version() const { return base_version_; }
  /// Whether clients say sample counts, steps and metrics: under privacy these stay with them, no
  /// client is asked to evaluate, and the updates weigh the same.
  bool clients_send_metrics() const {
    const spec::Privacy& privacy = object_.spec.privacy;
    return !privacy.differential_privacy && !privacy.secure_aggregation;
  }
  /// The newest version of this job's chain; the base before its first round.
  const std::optional<base::VersionNumber>& model_version() const { return model_version_; }
  const std::optional<JobFinished>& finished() const { return finished_; }
  base::Time created() const { return created_; }
  base::Time started() const { return started_; }
  base::Time ended() const { return ended_; }
  int64_t rounds_done() const { return rounds_done_; }

  /// The round that runs, or null.
  const Round* current() const;
  /// Number and attempt of the round to select for.
  base::RoundNumber next_round() const { return base::RoundNumber(rounds_done_ + 1); }
  int64_t next_attempt() const { return next_attempt_; }
  /// All rounds and their retries, oldest first; participants only of the last kDetailedRounds.
  const std::deque<Round>& rounds() const { return rounds_; }
  /// Metrics of the newest version.
  const std::map<std::string, double>& metrics() const { return metrics_; }

  /// Updates that a round needs: of `cohort` clients, as selection.quorum says.
  int64_t Quorum(int64_t cohort) const;

  static constexpr size_t kDetailedRounds = 20;

 private:
  void On(const JobConfigured& event, base::Time time);
  void On(const JobStarted& event, base::Time time);
  void On(const RoundStarted& event, base::Time time);
  void On(const UpdateAccepted& event, base::Time time);
  void On(const ClientFailed& event, base::Time time);
  void On(const RoundClosed& event, base::Time time);
  void On(const RoundMissed& event, base::Time time);
  void On(const RoundAggregated& event, base::Time time);
  void On(const RoundEvaluated& event, base::Time time);
  void On(const RoundPublished& event, base::Time time);
  void On(const JobFinished& event, base::Time time);
  Round* Running();
  base::Status RequirePhase(RoundPhase phase, std::string_view event) const;
  base::Status RequireParticipant(const base::ClientName& client, std::string_view event) const;

  spec::FederatedLearningJob object_;
  base::Digest config_digest_;
  uint64_t seed_ = 0;
  std::optional<base::VersionNumber> base_version_;
  std::optional<base::VersionNumber> model_version_;
  std::optional<JobFinished> finished_;
  base::Time created_;
  base::Time started_;
  base::Time ended_;
  bool configured_ = false;
  int64_t rounds_done_ = 0;
  int64_t next_attempt_ = 0;
  int64_t misses_ = 0;  // of the round to come, since the job was last (re)tried
  std::string last_miss_;
  ConvergenceDecision convergence_;
  std::vector<double> convergence_history_;
  std::map<std::string, double> metrics_;
  std::deque<Round> rounds_;
};

}  // namespace fl::aggregator
