#include "cli/federation/federation.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "cli/federation/progress.h"
#include "cli/federation/supervisor.h"
#include "cli/federation/workspace.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "registry/open.h"
#include "spec/config_digest.h"
#include "spec/defaults.h"
#include "spec/json.h"

namespace fl::cli {
namespace {

constexpr auto kStartLimit = std::chrono::seconds(30);
constexpr auto kPollWait = std::chrono::seconds(1);
constexpr auto kStopGrace = std::chrono::seconds(10);

std::string RegistryUri(const Plan& plan, const RunOptions& options) {
  return plan.model.spec.registry ? plan.model.spec.registry->uri : options.registry;
}

/// How an earlier run of the job ended, as the registry remembers it.
base::Result<std::optional<registry::FinishedJob>> EarlierEnding(
    const std::string& uri, const base::ModelName& model, const spec::FederatedLearningJob& job) {
  base::Result<std::unique_ptr<registry::ModelRepository>> reader =
      registry::OpenReader(uri, model);
  if (reader.status().code() == base::Code::kNotFound)
    return std::optional<registry::FinishedJob>();
  FL_RETURN_IF_ERROR(reader.status());
  FL_ASSIGN_OR_RETURN(std::optional<registry::FinishedJob> ending,
                      (*reader)->FindFinishedJob(base::JobName(job.metadata.name)));
  if (!ending || ending->outcome != "Succeeded") return std::optional<registry::FinishedJob>();
  spec::FederatedLearningJob with_defaults = job;
  spec::ApplyDefaults(with_defaults);
  if (ending->config_digest != spec::ConfigDigest(with_defaults)) {
    return base::FailedPrecondition(
        "job \"" + job.metadata.name + "\" has run before with another configuration",
        "give the job another name, or another registry: --registry URI");
  }
  // More rounds than before are a reason to go on.
  if (ending->reason == "RoundsCompleted" && ending->version) {
    FL_ASSIGN_OR_RETURN(const registry::VersionInfo version, (*reader)->Get(*ending->version));
    if (version.round.value() < job.spec.rounds) return std::optional<registry::FinishedJob>();
  }
  return ending;
}

class Federation {
 public:
  Federation(Context& context, const Plan& plan, const RunOptions& options, Workspace workspace)
      : context_(context),
        plan_(plan),
        options_(options),
        workspace_(std::move(workspace)),
        progress_(context) {}

  base::Status Run(const std::vector<spec::FederatedLearningJob>& jobs) {
    FL_RETURN_IF_ERROR(StartAggregator());
    FL_ASSIGN_OR_RETURN(client_, Connect());
    FL_RETURN_IF_ERROR(Submit(jobs));
    FL_RETURN_IF_ERROR(StartAgents());
    base::Status first_failure;
    for (const spec::FederatedLearningJob& job : jobs) {
      const base::Status followed = Follow(base::JobName(job.metadata.name));
      if (followed.code() == base::Code::kCancelled) {
        progress_.Close();
        supervisor_.Stop(kStopGrace);
        return followed.WithHint("the same command goes on where this stopped");
      }
      if (first_failure.ok()) first_failure = followed;
    }
    supervisor_.Stop(kStopGrace);
    return first_failure;
  }

 private:
  base::Command Daemon(const std::string& program, std::vector<std::string> arguments,
                       const std::string& process) const {
    base::Command command;
    command.argv = {(context_.program_directory / program).string()};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    command.argv.insert(command.argv.end(), {"--log-format", "json"});
    command.stdout_file = workspace_.log_file(process);
    command.stderr_file = workspace_.log_file(process);
    return command;
  }

  base::Command AggregatorCommand(int port) const {
    return Daemon("fl-aggregatord",
                  {"--state-dir", workspace_.aggregator_state().string(), "--registry",
                   options_.registry, "--listen", "127.0.0.1:" + std::to_string(port), "--tls-cert",
                   workspace_.server_certificate_file().string(), "--tls-key",
                   workspace_.server_key_file().string(), "--admin-token-file",
                   workspace_.token_file().string(), "--port-file", workspace_.port_file().string(),
                   "--trainers", workspace_.aggregator_trainers().string(), "--data-dir",
                   plan_.data_dir.string()},
                  "aggregator");
  }

  /// Starts it on a port that is free, reads which, and hands the process to the supervisor with
  /// that port, so that agents find it again after a crash.
  base::Status StartAggregator() {
    FL_RETURN_IF_ERROR(workspace_.WriteAggregatorTrainers(plan_));
    FL_RETURN_IF_ERROR(base::RemoveFile(workspace_.port_file()));
    FL_ASSIGN_OR_RETURN(base::Subprocess process, base::Subprocess::Start(AggregatorCommand(0)));
    const base::Instant give_up = context_.clock->Monotonic() + kStartLimit;
    while (!std::filesystem::exists(workspace_.port_file())) {
      if (context_.stop.stop_requested()) return base::Cancelled("stopped");
      const base::Result<base::ExitInfo> exit =
          process.Wait(context_.clock->Monotonic() + std::chrono::milliseconds(5), context_.stop);
      if (exit.ok()) return StartFailure(exit->ToString());
      if (context_.clock->Monotonic() > give_up) return StartFailure("it does not answer");
    }
    FL_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(workspace_.port_file()));
    FL_ASSIGN_OR_RETURN(const nlohmann::json json, base::ParseJson(text, "port file"));
    base::JsonReader reader(json, "port file");
    int64_t port = 0;
    reader.Required("port", &port);
    FL_RETURN_IF_ERROR(reader.status());
    url_ = "https://127.0.0.1:" + std::to_string(port);
    supervisor_.Adopt("the aggregator", AggregatorCommand(static_cast<int>(port)),
                      std::move(process));
    return base::OkStatus();
  }

  base::Status StartFailure(const std::string& how) const {
    const base::Path log = workspace_.log_file("aggregator");
    std::string last;
    if (const base::Result<std::string> text = base::ReadFile(log, 64 << 20); text.ok()) {
      const size_t end = text->find_last_not_of('\n');
      const size_t begin = end == std::string::npos ? 0 : text->rfind('\n', end);
      last = text->substr(begin == std::string::npos ? 0 : begin + 1);
      while (!last.empty() && last.back() == '\n') last.pop_back();
    }
    return base::FailedPrecondition(
        "the aggregator did not start: " + how + (last.empty() ? "" : "; its last words: " + last),
        "its log is " + log.string());
  }

  base::Result<std::unique_ptr<JobsClient>> Connect() {
    Context local = context_;
    local.global = {};
    local.global.aggregator = url_;
    local.global.token_file = workspace_.token_file().string();
    local.global.ca_file = workspace_.ca_file().string();
    return OpenJobs(local);
  }

  base::Status Submit(const std::vector<spec::FederatedLearningJob>& jobs) {
    FL_RETURN_IF_ERROR(client_->Apply(plan_.model).status());
    std::vector<spec::FederatedClient> clients;
    for (const PlannedClient& planned : plan_.clients) {
      spec::FederatedClient client = planned.object;
      FL_ASSIGN_OR_RETURN(const base::PublicKey key, workspace_.KeyOf(planned.name));
      client.spec.public_key = key.ToOpenSsh();
      clients.push_back(std::move(client));
    }
    FL_RETURN_IF_ERROR(client_->Apply(clients).status());
    for (const spec::FederatedLearningJob& job : jobs) FL_RETURN_IF_ERROR(SubmitJob(job));
    return base::OkStatus();
  }

  base::Status SubmitJob(const spec::FederatedLearningJob& job) {
    const base::JobName name(job.metadata.name);
    const base::Result<wire::JobView> before = client_->Job(name);
    if (before.ok() && IsFailed(*before)) {
      // What failed is tried again: that is what running it again asks for.
      progress_.Say("job/" + name.str() + " failed before; it is tried again");
      return client_->Act(name, JobAction::kRetry).status();
    }
    spec::FederatedLearningJob object = job;
    if (before.ok()) {
      FL_ASSIGN_OR_RETURN(const spec::FederatedLearningJob known,
                          spec::FromJson<spec::FederatedLearningJob>(before->object));
      object.spec.attempt = std::max(object.spec.attempt, known.spec.attempt);
    }
    return client_->Apply(object).status();
  }

  static bool IsFailed(const wire::JobView& job) {
    const wire::Condition* failed = job.status.Find("Failed");
    return failed != nullptr && failed->status;
  }

  base::Status StartAgents() {
    const auto per_process = static_cast<size_t>(options_.clients_per_process);
    for (size_t first = 0; first < plan_.clients.size(); first += per_process) {
      const size_t end = std::min(first + per_process, plan_.clients.size());
      const std::vector<PlannedClient> clients(plan_.clients.begin() + static_cast<int64_t>(first),
                                               plan_.clients.begin() + static_cast<int64_t>(end));
      const std::string process = clients.front().name.str();
      FL_RETURN_IF_ERROR(workspace_.WriteAgentConfig(process, url_, clients, plan_));
      std::vector<std::string> arguments = {"--config", workspace_.agent_config(process).string()};
      if (options_.trainers_file) {
        arguments.insert(arguments.end(), {"--trainers", *options_.trainers_file});
      }
      FL_RETURN_IF_ERROR(
          supervisor_.Start("the agent of " + process, Daemon("fl-agentd", arguments, process)));
    }
    progress_.Say("aggregator at " + url_ + ", " +
                  base::Count(static_cast<int64_t>(plan_.clients.size()), "agent") +
                  "; state and logs in " + options_.state_dir);
    return base::OkStatus();
  }

  base::Status Follow(const base::JobName& name) {
    uint64_t revision = 0;
    base::Instant last_answer = context_.clock->Monotonic();
    while (true) {
      if (context_.stop.stop_requested()) {
        return base::Cancelled("stopped in the middle of job \"" + name.str() + "\"");
      }
      const base::Result<wire::JobView> job =
          revision == 0 ? client_->Job(name) : client_->WaitForChange(name, revision, kPollWait);
      for (const std::string& line : supervisor_.TakeNews()) progress_.Say(line);
      if (!job.ok()) {
        if (job.status().code() == base::Code::kCancelled) continue;
        if (!job.status().retryable() || context_.clock->Monotonic() - last_answer > kStartLimit) {
          progress_.Close();
          return job.status();
        }
        continue;
      }
      last_answer = context_.clock->Monotonic();
      revision = job->revision;
      ShowProgress(*job);
      if (job->status.Finished()) return Conclude(*job);
    }
  }

  void ShowProgress(const wire::JobView& job) {
    int64_t connected = 0;
    if (context_.out_is_terminal) {
      if (const base::Result<std::vector<ClientView>> clients = client_->Clients(); clients.ok()) {
        connected = std::count_if(clients->begin(), clients->end(),
                                  [](const ClientView& c) { return c.status.connected; });
      }
    }
    progress_.Show(job, connected, static_cast<int64_t>(plan_.clients.size()));
  }

  base::Status Conclude(const wire::JobView& job) {
    progress_.Close();
    const std::string name = JobNameOf(job).str();
    if (IsFailed(job)) {
      const wire::Condition* failed = job.status.Find("Failed");
      return base::FailedPrecondition(
          "job \"" + name + "\" failed (" + failed->reason + "): " + failed->message,
          "the logs are in " + options_.state_dir + "/logs; the same command tries again");
    }
    const wire::Condition* succeeded = job.status.Find("Succeeded");
    const std::string version = std::to_string(job.status.model_version.value_or(0));
    context_.out << "job/" << name << " succeeded: " << succeeded->message << "; version "
                 << version << "  " << FormatMetrics(job.status.metrics) << "\n";
    return base::OkStatus();
  }

  Context& context_;
  const Plan& plan_;
  const RunOptions& options_;
  Workspace workspace_;
  RunProgress progress_;
  Supervisor supervisor_;
  std::string url_;
  std::unique_ptr<JobsClient> client_;
};

}  // namespace

base::Status RunFederation(Context& context, const Plan& plan, const RunOptions& options) {
  const std::string uri = RegistryUri(plan, options);
  const base::ModelName model(plan.model.metadata.name);
  std::vector<spec::FederatedLearningJob> jobs;
  for (const spec::FederatedLearningJob& job : plan.jobs) {
    FL_ASSIGN_OR_RETURN(const std::optional<registry::FinishedJob> ending,
                        EarlierEnding(uri, model, job));
    if (!ending) {
      jobs.push_back(job);
      continue;
    }
    context.out << "job/" << job.metadata.name << " has succeeded before (" << ending->reason
                << ")";
    if (ending->version) context.out << ": version " << *ending->version;
    context.out << "; nothing to do\n";
  }
  if (!jobs.empty()) {
    FL_ASSIGN_OR_RETURN(
        Workspace workspace,
        Workspace::Open(base::Path(options.state_dir) / model.str(), *context.clock));
    Federation federation(context, plan, options, std::move(workspace));
    FL_RETURN_IF_ERROR(federation.Run(jobs));
  }
  context.out << "registry: " << uri << "/" << model << "\n";
  return base::OkStatus();
}

}  // namespace fl::cli
