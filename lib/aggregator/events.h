#pragma once

/// What happens to a job, as its journal keeps it. A job's state is the fold of these events
/// (job.h).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/digest.h"
#include "base/ids.h"
#include "base/status.h"

namespace fl::aggregator {

/// The job was submitted, or changed by an administrator: the whole object as it is now.
struct JobConfigured {
  std::string object;  ///< FederatedLearningJob as canonical JSON, defaults applied
  base::Digest config_digest;
  uint64_t seed = 0;  ///< for everything random of this job; fixed at submission
};

/// It is its turn: the version it starts from is frozen.
struct JobStarted {
  base::VersionNumber base_version;
};

/// A cohort was drawn and is asked to train.
struct RoundStarted {
  base::RoundNumber round;
  int64_t attempt = 0;
  std::vector<base::ClientName> cohort;  ///< sorted
  base::VersionNumber from;              ///< the version that is trained on
};

/// A client's update is in the spool.
struct UpdateAccepted {
  base::ClientName client;
  base::Digest digest;
  uint64_t size = 0;
  /// None where the job keeps counts at the clients.
  std::optional<int64_t> samples;
  int64_t steps = 0;
  std::map<std::string, double> metrics;

  /// In the aggregate: the samples; 1 where they are not said, so that clients count alike.
  int64_t weight() const { return samples.value_or(1); }
};

/// A client gave up, or sent something that cannot be used.
struct ClientFailed {
  base::ClientName client;
  std::string reason;
};

/// No more updates are taken; they are to be aggregated.
struct RoundClosed {
  std::string reason;
};

/// The attempt ended without a version.
struct RoundMissed {
  std::string reason;
};

/// The candidate is written.
struct RoundAggregated {
  base::Digest weights;
  uint64_t weights_size = 0;
  std::optional<base::Digest> state;
  uint64_t state_size = 0;
  int64_t contributors = 0;
  std::map<std::string, double> train_metrics;
};

/// The candidate's metrics are known.
struct RoundEvaluated {
  std::map<std::string, double> metrics;
  std::string message;  ///< what went wrong while evaluating, if anything
};

struct RoundPublished {
  base::VersionNumber version;
};

struct JobFinished {
  bool succeeded = false;
  std::string reason;  ///< CamelCase: RoundsCompleted, Converged, MissedQuorum, Aborted, …
  std::string message;
};

using EventBody =
    std::variant<JobConfigured, JobStarted, RoundStarted, UpdateAccepted, ClientFailed, RoundClosed,
                 RoundMissed, RoundAggregated, RoundEvaluated, RoundPublished, JobFinished>;

struct Event {
  base::Time time;
  EventBody body;
};

/// The step is a change of phase, which has to survive a power cut. (Answers of single clients need
/// not: the client is asked again.)
bool NeedsSync(const EventBody& body);

std::string ToJson(const Event& event);
base::Result<Event> EventFromJson(std::string_view text);

/// The event as a line of the job's log: level and text.
struct EventLine {
  std::string level;
  std::string message;
};
EventLine Describe(const EventBody& body);

}  // namespace fl::aggregator
