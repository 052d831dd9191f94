#pragma once

/// What commands on jobs and models are asked of: a running aggregator, a registry, later a
/// cluster. Commands know only these two interfaces.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "cli/context.h"
#include "registry/repository.h"
#include "registry/version.h"
#include "spec/types.h"
#include "wire/status.h"

namespace fl::cli {

enum class ApplyResult { kCreated, kConfigured, kUnchanged };
/// "created", "configured", "unchanged".
std::string_view Name(ApplyResult result);

enum class JobAction { kPause, kResume, kAbort, kRetry };
/// "pause", …
std::string_view Name(JobAction action);

/// A client as it was given, where that is known, and as it is doing.
struct ClientView {
  std::optional<spec::FederatedClient> object;
  wire::ClientStatus status;
};

/// The name in the job's object.
base::JobName JobNameOf(const wire::JobView& job);

/// Jobs, and the clients that take part. One thread. All may return kUnavailable, kUnauthenticated,
/// kPermissionDenied, kCancelled (the context's stop), and kUnimplemented where a target cannot do
/// it, with a hint that says which can.
class JobsClient {
 public:
  virtual ~JobsClient() = default;

  virtual base::Result<std::vector<wire::JobView>> Jobs() = 0;
  /// kNotFound.
  virtual base::Result<wire::JobView> Job(const base::JobName& name) = 0;
  /// The job when its revision is past `since`, or as it is after `wait`.
  virtual base::Result<wire::JobView> WaitForChange(const base::JobName& name, uint64_t since,
                                                    base::Duration wait) = 0;
  /// All rounds with their clients, oldest first.
  virtual base::Result<std::vector<wire::RoundStatus>> Rounds(const base::JobName& name) = 0;
  /// Lines of the log with a sequence past `after`; where there are none, waits for them for up to
  /// `wait`.
  virtual base::Result<std::vector<wire::JobEvent>> Events(const base::JobName& name,
                                                           uint64_t after, base::Duration wait) = 0;
  virtual base::Result<std::vector<ClientView>> Clients() = 0;

  /// Gives the object, so that it is there afterwards as given. Safe to repeat.
  virtual base::Result<ApplyResult> Apply(const spec::FederatedModel& model) = 0;
  virtual base::Result<ApplyResult> Apply(const spec::FederatedLearningJob& job) = 0;
  /// Adds or replaces these clients and leaves the others. One result for each, in order.
  virtual base::Result<std::vector<ApplyResult>> Apply(
      const std::vector<spec::FederatedClient>& clients) = 0;
  /// kFailedPrecondition where it does not apply to the job as it is.
  virtual base::Result<wire::JobView> Act(const base::JobName& name, JobAction action) = 0;
};

struct ModelSummary {
  base::ModelName name;
  int64_t versions = 0;  ///< that are kept
  std::optional<base::VersionNumber> latest;
  std::optional<base::VersionNumber> current;
  std::optional<base::VersionNumber> promoted;
  std::optional<base::VersionNumber> pinned;
  std::optional<base::Time> updated;      ///< when the latest was made
  std::map<std::string, double> metrics;  ///< of the current version
};

struct VersionView {
  registry::VersionInfo info;
  std::vector<std::string> tags;  ///< of latest, promoted, pinned, current

  bool Has(std::string_view tag) const;
};

struct PinResult {
  std::optional<base::VersionNumber> from;  ///< what was current
  std::optional<base::VersionNumber> to;    ///< what is current now
  bool changed = false;
};

/// Models and their versions. As JobsClient.
class ModelsClient {
 public:
  virtual ~ModelsClient() = default;

  virtual base::Result<std::vector<ModelSummary>> Models() = 0;
  /// All versions, pruned ones too, oldest first. kNotFound.
  virtual base::Result<std::vector<VersionView>> Versions(const base::ModelName& model) = 0;
  /// By "v3", "3", "latest", "current", …. kNotFound.
  virtual base::Result<VersionView> Version(const base::ModelName& model,
                                            const std::string& name) = 0;
  /// Makes `version` current; none: the version that was current before.
  virtual base::Result<PinResult> Pin(const base::ModelName& model,
                                      std::optional<base::VersionNumber> version) = 0;
  virtual base::Result<PinResult> Unpin(const base::ModelName& model) = 0;
  virtual base::Result<registry::Change> Promote(const base::ModelName& model,
                                                 base::VersionNumber version) = 0;
  virtual base::Result<registry::OpenedBlob> Weights(const base::ModelName& model,
                                                     base::VersionNumber version) = 0;
  virtual base::Result<std::optional<registry::OpenedBlob>> State(const base::ModelName& model,
                                                                  base::VersionNumber version) = 0;
  virtual base::Result<registry::VerifyReport> Verify(const base::ModelName& model) = 0;
  virtual base::Result<registry::RetentionReport> Collect(
      const base::ModelName& model, const registry::RetentionPolicy& policy) = 0;
  /// Makes a version of a file; in an empty registry that is version 0.
  virtual base::Result<registry::VersionInfo> Publish(const base::ModelName& model,
                                                      const registry::PublishRequest& request) = 0;
};

/// Where the user's flags and environment point. A flag goes before a variable; of the variables,
/// FL_AGGREGATOR goes before FL_REGISTRY. kInvalidArgument where there is none, naming the three
/// choices, or where two flags are given.
base::Result<std::unique_ptr<JobsClient>> OpenJobs(const Context& context);
base::Result<std::unique_ptr<ModelsClient>> OpenModels(const Context& context);

}  // namespace fl::cli
