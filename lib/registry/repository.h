#pragma once

/// The registry of one model: its versions, what each of them is, which one is current, and the
/// records of how that came to be. The aggregator holds the one writer of a model; anybody may read
/// at any time, from any process, without a lock.
///
/// Versions are dense from 0. Tags: `v0`, `v1`, …, and three that move: `latest`, `promoted`,
/// `pinned`. The current version is the pinned one, else the promoted one, else the latest.
///
/// Publishing is blob, then manifest, then tags and records in one commit: whatever stops in
/// between, readers see what was there before, whole. Every read checks digests.

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "registry/record.h"
#include "registry/store.h"
#include "registry/version.h"

namespace fl::registry {

/// Whether a call changed something.
enum class Change { kMade, kAlreadySo };

/// One thing that is not as it was written.
struct Problem {
  enum class Kind { kMissing, kChanged, kReordered, kInconsistent };
  Kind kind;
  std::string subject;  ///< what, e.g. "v4 weights", "record 17", "tag latest"
  std::string message;  ///< e.g. "blob sha256:… has 100 bytes, its manifest says 4096"
};

struct VerifyReport {
  std::vector<Problem> problems;  ///< empty: every byte is as it was written
  int64_t versions = 0;           ///< present and checked
  int64_t pruned = 0;             ///< known from the records only
  int64_t records = 0;
  uint64_t bytes = 0;           ///< hashed
  bool history_absent = false;  ///< the versions were copied here without their records
  uint64_t unreferenced_blobs =
      0;  ///< not reachable from any tag; harmless, `Collect` removes them
  bool ok() const { return problems.empty(); }
};

/// What to keep. Never removed: the latest, pinned and promoted versions and their parents (what a
/// rollback returns to), whatever any other tag names, and `also_keep`.
struct RetentionPolicy {
  int64_t keep_last = 10;  ///< newest versions kept, ≥ 1
  /// E.g. the base versions of running jobs.
  std::vector<base::VersionNumber> also_keep;
  bool dry_run = false;
  /// Blobs that nothing refers to are removed when they are older: an OCI tool may be copying
  /// something in just now.
  base::Duration orphan_age = std::chrono::hours(24);
};

struct RetentionReport {
  std::vector<base::VersionNumber> pruned;
  uint64_t blobs = 0;  ///< removed, or to be removed in a dry run
  uint64_t bytes = 0;
};

struct WriterOptions {
  std::string owner;     ///< shown to whoever finds the registry held, e.g. "fl-aggregatord, pid 7"
  std::string software;  ///< stored with each version, e.g. "fl 0.1.0"
  base::Clock* clock = &base::Clock::System();
};

/// Thread-safe. Reading calls see the store as it is at that moment, also what other processes
/// wrote. All may return what the store returns: kUnavailable, kDataLoss, kPermissionDenied, ….
class ModelRepository {
 public:
  /// For reading. kNotFound where there is no such model.
  static base::Result<std::unique_ptr<ModelRepository>> OpenReader(
      std::unique_ptr<ContentStore> store);
  /// For reading and writing; makes the repository where there is none, removes what a killed
  /// writer left half done. kFailedPrecondition names the process that holds it.
  static base::Result<std::unique_ptr<ModelRepository>> OpenWriter(
      std::unique_ptr<ContentStore> store, WriterOptions options);
  ~ModelRepository();

  /// A path for a file named `name` (no '/') that Publish will take without copying it. Writers
  /// only.
  base::Result<base::Path> StagingPath(std::string_view name);

  /// Makes a version of the files given; those that were staged are consumed. Publishing again what
  /// is already there (same version, job, round and digests of weights and state) succeeds and
  /// changes nothing, so that a publisher that was killed simply repeats itself; with
  /// `request.version` none, that holds for the latest version of a request with a job.
  /// kAlreadyExists where that number is another version; kFailedPrecondition where it is not the
  /// next one or the parent is not in the registry; kInvalidArgument for a metric that is not
  /// finite, a file whose size is not as said, a number below 0; kResourceExhausted on a full disk.
  /// After any error the registry is as it was before, or (kUnavailable) the version is published.
  base::Result<VersionInfo> Publish(const PublishRequest& request);

  /// All versions, pruned ones too, oldest first. Reads the records, not the versions.
  base::Result<std::vector<VersionInfo>> List();
  /// kNotFound.
  base::Result<VersionInfo> Get(base::VersionNumber version);
  /// By name: "v3", "3", "latest", "promoted", "pinned", "current", or any other tag. kNotFound.
  base::Result<VersionInfo> Get(std::string_view name);
  /// kNotFound where there is no version yet.
  base::Result<VersionInfo> Latest();
  base::Result<VersionInfo> Current();
  base::Result<std::optional<base::VersionNumber>> Pinned();
  base::Result<std::optional<base::VersionNumber>> Promoted();
  /// The version, not pruned, that was current most lately before the one that is current now: what
  /// a rollback without a number returns to. kNotFound.
  base::Result<VersionInfo> PreviousCurrent();
  base::Result<std::vector<Record>> Records();

  /// The weights as a local file, checked against their digest (once for each process and blob; see
  /// ContentStore::OpenBlob). kNotFound; kFailedPrecondition where pruned; kDataLoss.
  base::Result<OpenedBlob> OpenWeights(base::VersionNumber version);
  /// The server optimiser's state likewise; none where the version has none.
  base::Result<std::optional<OpenedBlob>> OpenState(base::VersionNumber version);

  /// Makes `version` current until Unpin, whatever is promoted or published. The version is read
  /// and checked first (kDataLoss). kNotFound; kFailedPrecondition where pruned.
  base::Result<Change> Pin(base::VersionNumber version);
  base::Result<Change> Unpin();
  /// As Pin, for the promoted version. kFailedPrecondition where another version is pinned.
  base::Result<Change> Promote(base::VersionNumber version);

  /// Notes that a job ended. The same job with the same outcome again changes nothing.
  base::Result<Change> RecordJobFinished(const FinishedJob& job);
  /// The last ending noted for `job`, if any.
  base::Result<std::optional<FinishedJob>> FindFinishedJob(const base::JobName& job);

  /// Reads and hashes everything. An error only where it could not be done; what is wrong is in the
  /// report.
  base::Result<VerifyReport> Verify();

  /// Prunes by `policy`, and removes blobs that nothing refers to.
  base::Result<RetentionReport> Collect(const RetentionPolicy& policy);

  ContentStore& store() { return *store_; }

 private:
  struct Snapshot;
  struct NewRecord {
    std::string type;
    std::string data;
  };
  explicit ModelRepository(std::unique_ptr<ContentStore> store);

  base::Status RequireWriter() const;
  /// What is in the store now.
  base::Result<std::shared_ptr<const Snapshot>> Refresh();
  /// Where tags move one by one, a commit that stopped half way has its records and not all of its
  /// tags: makes the tags what the records say.
  base::Status FinishTags();
  /// Appends `records` to those of `from` and changes tags: `before`, then the records' own, then
  /// `after`. kAborted where `from` is not what the store holds any more.
  base::Status Commit(const Snapshot& from, const std::vector<NewRecord>& records,
                      const std::vector<TagChange>& before, const std::vector<TagChange>& after,
                      std::string_view operation);
  /// Runs `attempt`, a function of no arguments to a Result, alone and until it is not kAborted.
  template <typename Attempt>
  auto Write(Attempt attempt) -> decltype(attempt());

  base::Result<Change> MoveTag(std::string_view tag, base::VersionNumber version);
  base::Result<VersionInfo> PublishOnce(const PublishRequest& request);
  base::Status DropStaged(const base::Path& file);
  base::Result<RetentionReport> CollectOnce(const RetentionPolicy& policy);
  base::Result<OpenedBlob> OpenPart(base::VersionNumber version, std::string_view part,
                                    const base::Digest& digest, bool force);
  /// Reads manifest and config of a version.
  base::Result<Descriptor> CheckManifest(const VersionInfo& info);

  const std::unique_ptr<ContentStore> store_;
  std::optional<WriterOptions> writer_;
  std::unique_ptr<WriterHold> hold_;
  std::mutex write_mutex_;                ///< held through each writing call
  std::vector<base::Digest> superseded_;  ///< under write_mutex_: garbage of the last commit
  bool tags_unfinished_ = false;          ///< under write_mutex_: the last commit failed
  std::mutex snapshot_mutex_;
  std::shared_ptr<const Snapshot> snapshot_;
};

}  // namespace fl::registry
