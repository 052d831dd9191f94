// The engine's steps from the closed round to the published version.

#include <algorithm>
#include <filesystem>

#include "aggregator/engine.h"
#include "base/failpoint.h"

namespace fl::aggregator {
namespace {

/// Gives a lock up while it lives.
class Unlocked {
 public:
  explicit Unlocked(std::unique_lock<std::mutex>& lock) : lock_(lock) { lock_.unlock(); }
  ~Unlocked() { lock_.lock(); }

 private:
  std::unique_lock<std::mutex>& lock_;
};

std::string CandidateName(const JobState& job, const Round& round, std::string_view what) {
  return std::string(what) + "-" + job.name().str() + "-" + std::to_string(round.number.value()) +
         "-" + std::to_string(round.attempt);
}

/// Means of metrics by name, weighted by samples.
class MetricsMean {
 public:
  void Add(const std::string& name, double value, int64_t samples) {
    Sums& sums = sums_[name];
    sums.weighted += value * static_cast<double>(samples);
    sums.weight += static_cast<double>(samples);
  }
  std::map<std::string, double> Take() const {
    std::map<std::string, double> means;
    for (const auto& [name, sums] : sums_) {
      if (sums.weight > 0) means[name] = sums.weighted / sums.weight;
    }
    return means;
  }

 private:
  struct Sums {
    double weighted = 0;
    double weight = 0;
  };
  std::map<std::string, Sums> sums_;
};

/// Metrics of a candidate on the clients' own data.
std::map<std::string, double> ClientMetrics(const ClientEvaluation& evaluation) {
  MetricsMean mean;
  for (const auto& [client, report] : evaluation.reports) {
    for (const auto& [name, value] : report.metrics) mean.Add(name, value, report.samples);
  }
  return mean.Take();
}

/// Means of the metrics that updates came with, weighted by samples. Those that do not say
/// themselves that they are of training are called train_NAME, to be told from evaluations.
std::map<std::string, double> TrainMetrics(const Round& round) {
  MetricsMean mean;
  for (const auto& [client, participant] : round.participants) {
    for (const auto& [name, value] : participant.update.metrics) {
      mean.Add(name.starts_with("train") ? name : "train_" + name, value,
               participant.update.weight());
    }
  }
  return mean.Take();
}

}  // namespace

base::Status Engine::WriteCandidate(JobEntry& job, Lock& lock, strategy::AggregateReport& report) {
  const Round round = *job.state.current();
  const base::JobName name = job.state.name();
  const spec::Aggregation& aggregation = job.state.object().spec.aggregation;
  FL_ASSIGN_OR_RETURN(
      const strategy::Rule rule,
      strategy::MakeRule({aggregation.algorithm.value_or("FedAvg"), aggregation.parameters}));
  strategy::AggregateRequest request;
  FL_ASSIGN_OR_RETURN(request.output,
                      core_.repository->StagingPath(CandidateName(job.state, round, "weights")));
  FL_ASSIGN_OR_RETURN(request.state_output,
                      core_.repository->StagingPath(CandidateName(job.state, round, "state")));
  const Unlocked unlocked(lock);
  FL_RETURN_IF_ERROR(base::Failpoint("engine.aggregate"));
  FL_ASSIGN_OR_RETURN(const registry::OpenedBlob weights,
                      core_.repository->OpenWeights(round.from));
  FL_ASSIGN_OR_RETURN(const tensor::SafetensorsFile global,
                      tensor::SafetensorsFile::Open(weights.path));
  FL_ASSIGN_OR_RETURN(const std::optional<registry::OpenedBlob> memory,
                      core_.repository->OpenState(round.from));
  std::optional<tensor::SafetensorsFile> state;
  if (memory && rule.keeps_state()) {
    FL_ASSIGN_OR_RETURN(state, tensor::SafetensorsFile::Open(memory->path));
  }
  std::vector<tensor::SafetensorsFile> files;
  files.reserve(round.participants.size());
  for (const auto& [client, participant] : round.participants) {
    if (participant.state != Participant::State::kAccepted) continue;
    FL_ASSIGN_OR_RETURN(tensor::SafetensorsFile file,
                        tensor::SafetensorsFile::Open(
                            core_.spool.UpdatePath(name, round.number, round.attempt, client)));
    files.push_back(std::move(file));
    request.updates.push_back({.client = client,
                               .weight = static_cast<double>(participant.update.weight()),
                               .steps = participant.update.steps,
                               .tensors = &files.back()});
  }
  request.global = &global;
  request.state = state ? &*state : nullptr;
  request.metadata = global.header().metadata();
  request.pool = options_.pool;
  // Publishing makes it durable; after a power cut before that it is written again.
  request.durable = false;
  return strategy::Aggregate(rule, request, report);
}

base::Status Engine::Aggregate(JobEntry& job, Lock& lock) {
  strategy::AggregateReport report;
  const base::Status status = WriteCandidate(job, lock, report);
  for (const strategy::AggregateReport::Rejected& rejected : report.rejected) {
    core_.Note(job, "warning",
               "update from client \"" + rejected.client.str() + "\" left out: " + rejected.reason);
  }
  if (status.code() == base::Code::kFailedPrecondition) {
    // Nothing can come of these updates: e.g. all have weight 0. The model stays as it is.
    return core_.Append(job, RoundMissed{status.message()});
  }
  FL_RETURN_IF_ERROR(status);
  RoundAggregated event;
  event.weights = report.output.digest;
  event.weights_size = report.output.size;
  if (report.state) {
    event.state = report.state->digest;
    event.state_size = report.state->size;
  }
  event.contributors = std::count_if(report.accepted.begin(), report.accepted.end(),
                                     [](const auto& a) { return a.weight > 0; });
  event.train_metrics = TrainMetrics(*job.state.current());
  return core_.Append(job, std::move(event));
}

base::Result<bool> Engine::EnsureCandidate(JobEntry& job, Lock& lock) {
  const Round round = *job.state.current();
  FL_ASSIGN_OR_RETURN(const base::Path path,
                      core_.repository->StagingPath(CandidateName(job.state, round, "weights")));
  if (std::filesystem::exists(path)) return true;
  const base::Result<registry::VersionInfo> latest = core_.repository->Latest();
  if (latest.ok() && latest->job == job.state.name() && latest->round == round.number &&
      latest->weights == round.candidate->weights) {
    return false;
  }
  strategy::AggregateReport report;
  FL_RETURN_IF_ERROR(WriteCandidate(job, lock, report));
  if (report.output.digest == round.candidate->weights) return true;
  return base::DataLoss("the updates of round " + std::to_string(round.number.value()) +
                        " give other weights than before the restart");
}

void Engine::StartClientEvaluation(JobEntry& job) {
  const Round& round = *job.state.current();
  ClientEvaluation evaluation;
  evaluation.job = job.state.name();
  evaluation.round = round.number;
  evaluation.attempt = round.attempt;
  evaluation.deadline =
      core_.clock().Monotonic() +
      std::chrono::seconds(job.state.object().spec.round_policy.deadline_seconds.value_or(600));
  for (const base::ClientName& client : core_.Eligible(job.state)) {
    const std::optional<base::Instant> until = core_.PresentUntil(client, core_.started);
    if (!until || core_.clock().Monotonic() < *until) evaluation.waiting.insert(client);
  }
  core_.evaluation = std::move(evaluation);
  core_.task_polls.Sweep(core_.clock().Monotonic());
}

void Engine::DropAbsentEvaluators() {
  ClientEvaluation& evaluation = *core_.evaluation;
  for (auto client = evaluation.waiting.begin(); client != evaluation.waiting.end();) {
    const std::optional<base::Instant> until = core_.PresentUntil(*client, core_.started);
    if (until && core_.clock().Monotonic() >= *until) {
      evaluation.failures[*client] = "it went away";
      client = evaluation.waiting.erase(client);
      continue;
    }
    if (until) WakeAt(*until);
    ++client;
  }
}

base::Result<bool> Engine::Evaluate(JobEntry& job, Lock& lock, std::stop_token stop) {
  const Round round = *job.state.current();
  const spec::FederatedLearningJob object = job.state.object();
  FL_ASSIGN_OR_RETURN(const base::Path candidate,
                      core_.repository->StagingPath(CandidateName(job.state, round, "weights")));
  FL_ASSIGN_OR_RETURN([[maybe_unused]] const bool is_there, EnsureCandidate(job, lock));
  const bool by_clients = object.spec.evaluation.clients == spec::EvaluationClients::kAll &&
                          job.state.clients_send_metrics();
  if (by_clients) {
    if (!core_.evaluation) {
      FL_RETURN_IF_ERROR(core_.Serve(round.candidate->weights, candidate));
      StartClientEvaluation(job);
    }
    DropAbsentEvaluators();
    if (!core_.evaluation->waiting.empty() &&
        core_.clock().Monotonic() < core_.evaluation->deadline) {
      WakeAt(core_.evaluation->deadline);
      return false;
    }
  }
  RoundEvaluated event;
  if (object.spec.evaluation.test_dataset) {
    base::Result<std::map<std::string, double>> metrics = std::map<std::string, double>();
    {
      const Unlocked unlocked(lock);
      metrics = options_.evaluator(object, candidate, stop);
    }
    if (metrics.status().code() == base::Code::kCancelled) return false;
    if (!metrics.ok()) {
      event.message = "evaluation on the test dataset failed: " + metrics.status().message();
    } else {
      event.metrics = *metrics;
    }
  }
  if (by_clients && core_.evaluation) {
    for (const auto& [name, value] : ClientMetrics(*core_.evaluation)) {
      event.metrics["clients_" + name] = value;
      event.metrics.emplace(name, value);
    }
    for (const auto& [client, reason] : core_.evaluation->failures) {
      core_.Note(job, "warning", "client \"" + client.str() + "\" could not evaluate: " + reason);
    }
    core_.evaluation.reset();
    core_.served.erase(round.candidate->weights);
  }
  FL_RETURN_IF_ERROR(core_.Append(job, std::move(event)));
  return true;
}

base::Status Engine::Publish(JobEntry& job, Lock& lock) {
  const Round round = *job.state.current();
  const RoundAggregated& candidate = *round.candidate;
  registry::PublishRequest request;
  FL_ASSIGN_OR_RETURN(const registry::VersionInfo parent, core_.repository->Get(round.from));
  request.parent = registry::VersionRef{parent.version, parent.manifest};
  request.job = job.state.name();
  request.round = round.number;
  request.algorithm = job.state.object().spec.aggregation.algorithm.value_or("FedAvg");
  request.contributors = candidate.contributors;
  request.metrics = round.metrics;
  request.config_digest = job.state.config_digest();
  FL_ASSIGN_OR_RETURN(request.weights.path,
                      core_.repository->StagingPath(CandidateName(job.state, round, "weights")));
  request.weights.digest = candidate.weights;
  request.weights.size = candidate.weights_size;
  if (candidate.state) {
    request.state.emplace();
    FL_ASSIGN_OR_RETURN(request.state->path,
                        core_.repository->StagingPath(CandidateName(job.state, round, "state")));
    request.state->digest = candidate.state;
    request.state->size = candidate.state_size;
  }
  // Where the version is out already (killed before that was written down), Publish finds it.
  FL_ASSIGN_OR_RETURN([[maybe_unused]] const bool is_there, EnsureCandidate(job, lock));
  base::Result<registry::VersionInfo> version = base::Internal("not published");
  {
    const Unlocked unlocked(lock);
    FL_RETURN_IF_ERROR(base::Failpoint("engine.publish"));
    version = core_.repository->Publish(request);
    FL_RETURN_IF_ERROR(base::Failpoint("engine.published"));
  }
  FL_RETURN_IF_ERROR(version.status());
  FL_RETURN_IF_ERROR(core_.Append(job, RoundPublished{version->version}));
  FL_RETURN_IF_ERROR(core_.spool.RemoveJob(job.state.name()));
  const std::optional<spec::FederatedModel>& model = core_.catalog.model();
  if (model && model->spec.retention.keep_last) {
    FL_RETURN_IF_ERROR(core_.repository
                           ->Collect({.keep_last = *model->spec.retention.keep_last,
                                      .also_keep = {*job.state.base_version()}})
                           .status());
  }
  return base::OkStatus();
}

}  // namespace fl::aggregator
