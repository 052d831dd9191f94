#pragma once

/// What people, scripts and the operator are told. Times are RFC 3339 text in UTC.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fl::wire {

/// As in Kubernetes: type, True/False/Unknown, a CamelCase reason and a sentence.
struct Condition {
  std::string type;
  bool status = false;
  std::string reason;
  std::string message;
  std::string last_transition_time;
};

/// One client's part in one round.
struct RoundClient {
  std::string name;
  std::string state;  ///< "Training", "Accepted", "Rejected" or "Late"
  std::string reason;
  int64_t samples = 0;
};

/// A round, running or over.
struct RoundStatus {
  int64_t number = 0;
  int64_t attempt = 0;
  std::string phase;  ///< Selecting, Collecting, Aggregating, Evaluating, Publishing, Done, Missed
  std::string start_time;
  std::string end_time;
  std::string deadline;
  int64_t selected = 0;
  int64_t accepted = 0;
  int64_t rejected = 0;
  std::optional<int64_t> version;  ///< the version it published
  std::map<std::string, double> metrics;
  std::string message;
  std::vector<RoundClient> clients;  ///< only in the list of rounds
};

/// `.status` of a job.
struct JobStatus {
  int64_t observed_attempt = 0;
  std::vector<Condition> conditions;  ///< Progressing, QuorumMet, Suspended, Succeeded, Failed
  std::optional<RoundStatus> round;
  std::vector<RoundStatus> recent_rounds;  ///< the last ten, oldest first
  std::map<std::string, double> metrics;   ///< of the newest version
  std::optional<int64_t> base_version;
  std::optional<int64_t> model_version;
  int64_t rounds_done = 0;
  int64_t rounds_total = 0;
  std::string start_time;
  std::string end_time;
  std::optional<double> seconds_left;  ///< estimate from the rounds so far

  /// True once Succeeded or Failed holds.
  bool Finished() const;
  const Condition* Find(std::string_view type) const;
};

/// A job as GET /v1/jobs/{job} gives it: the object that was submitted, with `status`.
struct JobView {
  std::string object;  ///< FederatedLearningJob as JSON, without status
  JobStatus status;
  uint64_t revision = 0;  ///< of the aggregator's state, for ?since=
};

struct ClientStatus {
  std::string name;
  std::map<std::string, std::string> labels;
  bool connected = false;
  bool fenced = false;
  std::string last_seen;  ///< empty: never
  std::string software;
  std::string task;  ///< Task::Key of what it works on, or empty
  int64_t rounds_accepted = 0;
  int64_t rounds_rejected = 0;
  std::string last_error;
};

struct VersionStatus {
  int64_t version = 0;
  std::string digest;
  std::optional<int64_t> parent;
  std::string job;
  int64_t round = 0;
  std::string algorithm;
  int64_t contributors = 0;
  std::map<std::string, double> metrics;
  uint64_t size = 0;
  std::string created;
  bool pruned = false;
  std::vector<std::string> tags;  ///< latest, promoted, pinned, current
};

struct AggregatorStatus {
  std::string id;
  std::string software;
  std::string model;  ///< empty until one was given
  std::string registry;
  uint64_t revision = 0;
  int64_t jobs = 0;
  std::string active_job;
  int64_t clients = 0;
  int64_t connected = 0;
};

/// One line of a job's log.
struct JobEvent {
  uint64_t sequence = 0;
  std::string time;
  std::string level;  ///< info, warning, error
  std::string message;
};

std::string ToJson(const JobStatus& status);
std::string ToJson(const JobView& view);
std::string ToJson(const AggregatorStatus& status);
std::string RoundsToJson(const std::vector<RoundStatus>& rounds, uint64_t revision);
std::string ClientsToJson(const std::vector<ClientStatus>& clients, uint64_t revision);
std::string JobsToJson(const std::vector<JobView>& jobs, uint64_t revision);
std::string VersionsToJson(const std::vector<VersionStatus>& versions);
std::string EventsToJson(const std::vector<JobEvent>& events);

base::Result<JobStatus> JobStatusFromJson(std::string_view text);
base::Result<JobView> JobViewFromJson(std::string_view text);
base::Result<AggregatorStatus> AggregatorStatusFromJson(std::string_view text);
base::Result<std::vector<RoundStatus>> RoundsFromJson(std::string_view text);
base::Result<std::vector<ClientStatus>> ClientsFromJson(std::string_view text);
base::Result<std::vector<JobView>> JobsFromJson(std::string_view text);
base::Result<std::vector<VersionStatus>> VersionsFromJson(std::string_view text);
base::Result<std::vector<JobEvent>> EventsFromJson(std::string_view text);

}  // namespace fl::wire
