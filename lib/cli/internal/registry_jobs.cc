#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/internal/registry_target.h"
#include "registry/open.h"
#include "spec/metadata.h"

namespace fl::cli::internal {
namespace {

using base::Result;
using nlohmann::json;

/// What a registry knows of one job.
struct PastJob {
  base::ModelName model;
  std::vector<registry::VersionInfo> versions;  ///< that it published, oldest first
  std::optional<registry::FinishedJob> finished;
};

using PastJobs = std::map<base::JobName, PastJob>;

Result<PastJobs> ReadJobs(const std::string& uri) {
  PastJobs jobs;
  FL_ASSIGN_OR_RETURN(const std::vector<base::ModelName> models, registry::ListModels(uri));
  for (const base::ModelName& model : models) {
    FL_ASSIGN_OR_RETURN(const auto repository, registry::OpenReader(uri, model));
    FL_ASSIGN_OR_RETURN(const std::vector<registry::VersionInfo> versions, repository->List());
    for (const registry::VersionInfo& version : versions) {
      if (version.job.empty()) continue;
      PastJob& job = jobs[version.job];
      job.model = model;
      job.versions.push_back(version);
    }
    // A job that failed before its first round left a record and no version.
    FL_ASSIGN_OR_RETURN(const std::vector<registry::Record> records, repository->Records());
    for (const registry::Record& record : records) {
      if (record.type != registry::kRecordJobFinished) continue;
      FL_ASSIGN_OR_RETURN(const json data, base::ParseJson(record.data, "record"));
      std::string name;
      base::JsonReader reader(data, "record");
      reader.Required("job", &name);
      FL_RETURN_IF_ERROR(reader.status());
      PastJob& job = jobs[base::JobName(name)];
      job.model = model;
      FL_ASSIGN_OR_RETURN(job.finished, repository->FindFinishedJob(base::JobName(name)));
    }
  }
  return jobs;
}

wire::RoundStatus ToRound(const registry::VersionInfo& version) {
  wire::RoundStatus round;
  round.number = version.round.value();
  round.phase = "Done";
  round.end_time = base::FormatTime(version.created);
  round.selected = version.contributors;
  round.accepted = version.contributors;
  round.version = version.version.value();
  round.metrics = version.metrics;
  return round;
}

wire::JobView ToView(const base::JobName& name, const PastJob& job) {
  wire::JobView view;
  view.object = json{{"apiVersion", spec::kApiVersion},
                     {"kind", "FederatedLearningJob"},
                     {"metadata", {{"name", name.str()}}},
                     {"spec", {{"modelRef", {{"name", job.model.str()}}}}}}
                    .dump();
  wire::JobStatus& status = view.status;
  if (!job.versions.empty()) {
    const registry::VersionInfo& first = job.versions.front();
    const registry::VersionInfo& last = job.versions.back();
    if (first.parent) status.base_version = first.parent->version.value();
    status.model_version = last.version.value();
    status.rounds_done = last.round.value();
    status.rounds_total = last.round.value();
    status.metrics = last.metrics;
    status.start_time = base::FormatTime(first.created);
    status.round = ToRound(last);
    constexpr size_t kRecent = 10;
    for (size_t i = job.versions.size() - std::min(kRecent, job.versions.size());
         i < job.versions.size(); ++i) {
      status.recent_rounds.push_back(ToRound(job.versions[i]));
    }
  }
  if (job.finished) {
    const std::string time = base::FormatTime(job.finished->time);
    status.end_time = time;
    status.conditions.push_back({.type = job.finished->outcome,
                                 .status = true,
                                 .reason = job.finished->reason,
                                 .last_transition_time = time});
  }
  return view;
}

base::Status NeedsAggregator(std::string_view what) {
  return base::Unimplemented(
      "a registry does not " + std::string(what) + ": it holds what jobs left behind",
      "ask a running aggregator: --aggregator URL");
}

class RegistryJobs final : public JobsClient {
 public:
  explicit RegistryJobs(std::string uri) : uri_(std::move(uri)) {}

  Result<std::vector<wire::JobView>> Jobs() override {
    FL_ASSIGN_OR_RETURN(const PastJobs jobs, ReadJobs(uri_));
    std::vector<wire::JobView> views;
    for (const auto& [name, job] : jobs) views.push_back(ToView(name, job));
    return views;
  }

  Result<wire::JobView> Job(const base::JobName& name) override {
    FL_ASSIGN_OR_RETURN(const PastJob job, Find(name));
    return ToView(name, job);
  }

  Result<wire::JobView> WaitForChange(const base::JobName& name, uint64_t,
                                      base::Duration) override {
    // Nobody tells of changes here. A job that is over will not change; another may, but not for
    // us.
    FL_ASSIGN_OR_RETURN(wire::JobView view, Job(name));
    if (!view.status.Finished()) return NeedsAggregator("follow a job");
    return view;
  }

  Result<std::vector<wire::RoundStatus>> Rounds(const base::JobName& name) override {
    FL_ASSIGN_OR_RETURN(const PastJob job, Find(name));
    std::vector<wire::RoundStatus> rounds;
    for (const registry::VersionInfo& version : job.versions) rounds.push_back(ToRound(version));
    return rounds;
  }

  Result<std::vector<wire::JobEvent>> Events(const base::JobName&, uint64_t,
                                             base::Duration) override {
    return NeedsAggregator("keep logs");
  }
  Result<std::vector<ClientView>> Clients() override { return NeedsAggregator("know clients"); }
  Result<ApplyResult> Apply(const spec::FederatedModel&) override {
    return NeedsAggregator("take work");
  }
  Result<ApplyResult> Apply(const spec::FederatedLearningJob&) override {
    return NeedsAggregator("take work");
  }
  Result<std::vector<ApplyResult>> Apply(const std::vector<spec::FederatedClient>&) override {
    return NeedsAggregator("take work");
  }
  Result<wire::JobView> Act(const base::JobName&, JobAction action) override {
    return NeedsAggregator(std::string(Name(action)) + " jobs");
  }

 private:
  Result<PastJob> Find(const base::JobName& name) {
    FL_ASSIGN_OR_RETURN(const PastJobs jobs, ReadJobs(uri_));
    const auto found = jobs.find(name);
    if (found == jobs.end()) {
      return base::NotFound("the registry " + uri_ + " knows no job \"" + name.str() + "\"");
    }
    return found->second;
  }

  const std::string uri_;
};

}  // namespace

Result<std::unique_ptr<JobsClient>> OpenRegistryJobs(const Context&, const std::string& uri) {
  return std::unique_ptr<JobsClient>(std::make_unique<RegistryJobs>(uri));
}

}  // namespace fl::cli::internal
