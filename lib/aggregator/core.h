#pragma once

/// Everything the daemon knows, behind one lock: what administrators gave it, the jobs, who is
/// there, who waits for an answer. The engine (engine.h) and the two APIs work on it.

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "aggregator/catalog.h"
#include "aggregator/job.h"
#include "aggregator/journal.h"
#include "aggregator/parking.h"
#include "aggregator/sessions.h"
#include "aggregator/spool.h"
#include "aggregator/wakeup.h"
#include "obs/metrics.h"
#include "registry/repository.h"
#include "tensor/safetensors.h"
#include "wire/status.h"
#include "wire/task.h"

namespace fl::aggregator {

/// A job with its journal and its log.
struct JobEntry {
  explicit JobEntry(Journal opened) : journal(std::move(opened)) {}
  Journal journal;
  JobState state;
  std::deque<wire::JobEvent> log;     ///< the last kLogLines
  uint64_t sequence = 0;              ///< of the newest line
  bool forget_when_finished = false;  ///< deleted while it ran
  std::string blocked;                ///< why it does not go on just now, for its status
  static constexpr size_t kLogLines = 2000;
};

/// What is known of a client's agent since the daemon started.
struct Presence {
  int polls = 0;  ///< parked task polls
  std::optional<base::Instant> last_contact;
  base::Time last_seen;
  std::string software;
  int64_t accepted = 0;
  int64_t rejected = 0;
  std::string last_error;
};

/// The evaluation of a candidate by clients, while it runs.
struct ClientEvaluation {
  base::JobName job;
  base::RoundNumber round;
  int64_t attempt = 0;
  base::Instant deadline;
  std::set<base::ClientName> waiting;
  std::map<base::ClientName, wire::EvaluationReport> reports;
  std::map<base::ClientName, std::string> failures;
};

/// The weights that tasks of the running round start from (or are evaluated on), open for reading.
struct ServedModel {
  base::Digest digest;
  uint64_t size = 0;
  base::Path path;
  std::shared_ptr<const tensor::Header> header;
};

struct CoreOptions {
  base::Path state_dir;
  std::string registry_uri;
  base::Path data_dir = ".";  ///< where relative file: URIs of models and jobs start
  std::string aggregator_id;
  std::string software;
  base::Clock* clock = &base::Clock::System();
  base::RandomSource* random = &base::RandomSource::Secure();
  /// A client that has not been heard of for this long is not waited for.
  base::Duration absent_after = std::chrono::seconds(10);
};

/// Public members are read and changed under `mutex`, except where said.
class Core {
 public:
  /// Reads the state folder; opens the registry for writing where a model is known.
  /// kFailedPrecondition where another daemon has the folder or the registry.
  static base::Result<std::unique_ptr<Core>> Open(CoreOptions options);

  /// Writes the event to the job's journal and applies it. After an error nothing has changed.
  base::Status Append(JobEntry& job, EventBody body);
  /// A line in the job's log that is no event.
  void Note(JobEntry& job, std::string_view level, std::string message);
  /// Says in the job's status and log why it does not go on just now; its next event takes it back.
  void Hold(JobEntry& job, const base::Status& why);
  /// Something changed that people or agents may wait for.
  void Touch();

  /// Opens (and makes) the model's registry; publishes version 0 where it is empty.
  base::Status AdoptModel(const spec::FederatedModel& model);
  base::Result<JobEntry*> MakeJob(const base::JobName& name);
  base::Status ForgetJob(const base::JobName& name);

  /// The first job in order that is not finished, or null.
  JobEntry* ActiveJob();
  JobEntry* FindJob(const base::JobName& name);

  bool IsConnected(const base::ClientName& client) const;
  /// Until when the client counts as present: always where a poll is parked (nothing), else
  /// `absent_after` past its last contact, at earliest `since`.
  std::optional<base::Instant> PresentUntil(const base::ClientName& client,
                                            base::Instant since) const;
  /// Clients of the job's selector that are not fenced.
  std::vector<base::ClientName> Eligible(const JobState& job) const;
  /// What the client is to do now.
  std::optional<wire::Task> TaskFor(const base::ClientName& client) const;
  /// The running round of `job` if it is this one and collects, else kFailedPrecondition that names
  /// the current one.
  base::Result<JobEntry*> RequireCollecting(const base::JobName& job, base::RoundNumber round,
                                            int64_t attempt, const base::ClientName& client);
  /// Remembers what clients are given, so that their uploads can be checked against it.
  base::Status Serve(const base::Digest& digest, const base::Path& path);

  const CoreOptions options;
  const base::Clock& clock() const { return *options.clock; }

  std::mutex mutex;
  Wakeup wakeup;  ///< of the engine; thread-safe by itself

  uint64_t revision = 1;  ///< of all that people see
  Catalog catalog;
  Sessions sessions;
  const Spool spool;
  std::unique_ptr<registry::ModelRepository> repository;  ///< null until there is a model
  std::map<base::JobName, std::unique_ptr<JobEntry>> jobs;
  std::map<base::ClientName, Presence> presence;
  std::optional<ClientEvaluation> evaluation;
  /// The model of the running round and, while it is evaluated, the candidate.
  std::map<base::Digest, ServedModel> served;
  std::optional<base::Instant> collect_deadline;
  Parking task_polls;
  Parking watchers;
  obs::Metrics metrics;  ///< thread-safe by itself
  const base::Instant started;

 private:
  Core(CoreOptions opts, base::FileLock lock, Catalog opened);
  base::Status LoadJob(const base::JobName& name);
  base::Path JobFolder(const base::JobName& name) const;
  void Log(JobEntry& job, base::Time time, std::string_view level, std::string message);

  base::FileLock lock_;
};

}  // namespace fl::aggregator
