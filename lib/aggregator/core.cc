#include "aggregator/core.h"

#include <unistd.h>

#include <algorithm>

#include "obs/log.h"
#include "registry/open.h"
#include "spec/dataset_uri.h"
#include "spec/json.h"
#include "trainer/builtin.h"
#include "trainer/task.h"

namespace fl::aggregator {
namespace {

void LogLine(const base::JobName& job, std::string_view level, const std::string& message) {
  const obs::Level severity = level == "error"     ? obs::Level::kError
                              : level == "warning" ? obs::Level::kWarning
                                                   : obs::Level::kInfo;
  obs::Log(severity, message, {{"job", job}});
}

/// "file:PATH" as a path, a relative one below `folder`.
base::Result<base::Path> LocalPath(const std::string& uri, const base::Path& folder) {
  FL_ASSIGN_OR_RETURN(const spec::DatasetUri parsed, spec::DatasetUri::Parse(uri));
  return folder / parsed.path;
}

}  // namespace

Core::Core(CoreOptions opts, base::FileLock lock, Catalog opened)
    : options(std::move(opts)),
      catalog(std::move(opened)),
      sessions(options.aggregator_id, *options.clock, *options.random),
      spool(options.state_dir / "spool"),
      started(options.clock->Monotonic()),
      lock_(std::move(lock)) {}

base::Result<std::unique_ptr<Core>> Core::Open(CoreOptions options) {
  FL_RETURN_IF_ERROR(base::MakeDirectories(options.state_dir, 0700));
  const std::string owner = options.software + ", pid " + std::to_string(::getpid());
  FL_ASSIGN_OR_RETURN(base::FileLock lock,
                      base::FileLock::Acquire(options.state_dir / "lock", owner));
  FL_ASSIGN_OR_RETURN(Catalog catalog, Catalog::Open(options.state_dir / "catalog.jsonl"));
  std::unique_ptr<Core> core(new Core(std::move(options), std::move(lock), std::move(catalog)));
  for (const base::JobName& job : core->catalog.jobs()) FL_RETURN_IF_ERROR(core->LoadJob(job));
  if (core->catalog.model()) FL_RETURN_IF_ERROR(core->AdoptModel(*core->catalog.model()));
  return core;
}

base::Path Core::JobFolder(const base::JobName& name) const {
  return options.state_dir / "jobs" / name.str();
}

base::Status Core::LoadJob(const base::JobName& name) {
  const base::Path path = JobFolder(name) / "journal.jsonl";
  FL_ASSIGN_OR_RETURN(Journal::Opened opened, Journal::Open(path));
  auto job = std::make_unique<JobEntry>(std::move(opened.journal));
  for (const std::string& line : opened.lines) {
    const auto apply = [&]() -> base::Status {
      FL_ASSIGN_OR_RETURN(const Event event, EventFromJson(line));
      FL_RETURN_IF_ERROR(job->state.Apply(event));
      const EventLine text = Describe(event.body);
      Log(*job, event.time, text.level, text.message);
      return base::OkStatus();
    };
    const base::Status status = apply();
    if (!status.ok()) return status.WithContext(path.string());
  }
  jobs[name] = std::move(job);
  return base::OkStatus();
}

void Core::Log(JobEntry& job, base::Time time, std::string_view level, std::string message) {
  job.log.push_back(
      {++job.sequence, base::FormatTime(time), std::string(level), std::move(message)});
  if (job.log.size() > JobEntry::kLogLines) job.log.pop_front();
}

base::Status Core::Append(JobEntry& job, EventBody body) {
  Event event{clock().Now(), std::move(body)};
  FL_RETURN_IF_ERROR(job.state.Check(event));
  FL_RETURN_IF_ERROR(job.journal.Append(ToJson(event), NeedsSync(event.body)));
  FL_RETURN_IF_ERROR(job.state.Apply(event));
  job.blocked.clear();
  const EventLine line = Describe(event.body);
  Log(job, event.time, line.level, line.message);
  LogLine(job.state.name(), line.level, line.message);
  Touch();
  return base::OkStatus();
}

void Core::Note(JobEntry& job, std::string_view level, std::string message) {
  if (!job.log.empty() && job.log.back().message == message) return;
  LogLine(job.state.name(), level, message);
  Log(job, clock().Now(), level, std::move(message));
  Touch();
}

void Core::Hold(JobEntry& job, const base::Status& why) {
  job.blocked = why.message();
  Note(job, "error", why.ToString());
}

void Core::Touch() {
  ++revision;
  wakeup.Notify();
}

base::Status Core::AdoptModel(const spec::FederatedModel& model) {
  const base::ModelName name(model.metadata.name);
  if (repository == nullptr) {
    const std::string uri = model.spec.registry ? model.spec.registry->uri : options.registry_uri;
    FL_ASSIGN_OR_RETURN(repository, registry::OpenWriter(uri, name,
                                                         {.owner = options.software + ", pid " +
                                                                   std::to_string(::getpid()),
                                                          .software = options.software,
                                                          .clock = options.clock}));
  }
  const base::Result<registry::VersionInfo> latest = repository->Latest();
  if (latest.ok() || latest.status().code() != base::Code::kNotFound) return latest.status();

  registry::PublishRequest request;
  request.version = base::VersionNumber(0);
  FL_ASSIGN_OR_RETURN(request.weights.path, repository->StagingPath("initial"));
  if (model.spec.initial.builtin) {
    const spec::BuiltinModel& builtin = *model.spec.initial.builtin;
    FL_ASSIGN_OR_RETURN(
        const tensor::FileSummary written,
        trainer::WriteInitialModel({.architecture = std::string(spec::Name(builtin.architecture)),
                                    .layers = builtin.layers,
                                    .seed = static_cast<uint64_t>(builtin.seed.value_or(0))},
                                   request.weights.path));
    request.weights.digest = written.digest;
    request.weights.size = written.size;
  } else {
    FL_ASSIGN_OR_RETURN(request.weights.path,
                        LocalPath(model.spec.initial.uri.value_or(""), options.data_dir));
    const base::Result<tensor::SafetensorsFile> file =
        tensor::SafetensorsFile::Open(request.weights.path);
    if (!file.ok()) {
      return file.status().WithContext("initial model \"" + *model.spec.initial.uri + "\"");
    }
  }
  return repository->Publish(request).status();
}

base::Result<JobEntry*> Core::MakeJob(const base::JobName& name) {
  FL_ASSIGN_OR_RETURN(Journal::Opened opened, Journal::Open(JobFolder(name) / "journal.jsonl"));
  FL_RETURN_IF_ERROR(catalog.AddJob(name));
  std::unique_ptr<JobEntry>& slot = jobs[name];
  slot = std::make_unique<JobEntry>(std::move(opened.journal));
  return slot.get();
}

base::Status Core::ForgetJob(const base::JobName& name) {
  FL_RETURN_IF_ERROR(catalog.RemoveJob(name));
  jobs.erase(name);
  FL_RETURN_IF_ERROR(spool.RemoveJob(name));
  Touch();
  return base::RemoveTree(JobFolder(name));
}

JobEntry* Core::ActiveJob() {
  for (const base::JobName& name : catalog.jobs()) {
    JobEntry* job = FindJob(name);
    if (job != nullptr && !job->state.finished()) return job;
  }
  return nullptr;
}

JobEntry* Core::FindJob(const base::JobName& name) {
  const auto found = jobs.find(name);
  return found == jobs.end() ? nullptr : found->second.get();
}

bool Core::IsConnected(const base::ClientName& client) const {
  const auto found = presence.find(client);
  return found != presence.end() && found->second.polls > 0;
}

std::optional<base::Instant> Core::PresentUntil(const base::ClientName& client,
                                                base::Instant since) const {
  const auto found = presence.find(client);
  if (found != presence.end() && found->second.polls > 0) return std::nullopt;
  if (found != presence.end() && found->second.last_contact) since = *found->second.last_contact;
  return std::max(started, since) + options.absent_after;
}

std::vector<base::ClientName> Core::Eligible(const JobState& job) const {
  std::vector<base::ClientName> names;
  for (const auto& [name, client] : catalog.clients()) {
    const spec::LabelSelector& selector = job.object().spec.selection.client_selector;
    if (!client.spec.fenced && selector.Matches(client.metadata.labels)) names.push_back(name);
  }
  return names;
}

base::Status Core::Serve(const base::Digest& digest, const base::Path& path) {
  FL_ASSIGN_OR_RETURN(const tensor::SafetensorsFile file, tensor::SafetensorsFile::Open(path));
  served[digest] = {digest, file.bytes().size(), path,
                    std::make_shared<const tensor::Header>(file.header())};
  return base::OkStatus();
}

std::optional<wire::Task> Core::TaskFor(const base::ClientName& client) const {
  const auto known = catalog.clients().find(client);
  if (known == catalog.clients().end() || known->second.spec.fenced) return std::nullopt;
  const JobEntry* job = const_cast<Core*>(this)->ActiveJob();
  if (job == nullptr || job->state.object().spec.suspend) return std::nullopt;
  const Round* round = job->state.current();
  if (round == nullptr) return std::nullopt;
  wire::Task task;
  base::Instant deadline;
  base::Digest model;
  if (round->phase == RoundPhase::kCollecting && collect_deadline) {
    const auto found = round->participants.find(client);
    if (found == round->participants.end() ||
        found->second.state != Participant::State::kTraining) {
      return std::nullopt;
    }
    deadline = *collect_deadline;
    for (const auto& [digest, file] : served) model = digest;
  } else if (evaluation && evaluation->waiting.contains(client) && round->candidate) {
    task.kind = wire::TaskKind::kEvaluate;
    deadline = evaluation->deadline;
    model = round->candidate->weights;
  } else {
    return std::nullopt;
  }
  const auto file = served.find(model);
  if (file == served.end()) return std::nullopt;
  const spec::JobSpec& spec = job->state.object().spec;
  task.job = job->state.name();
  task.round = round->number;
  task.attempt = round->attempt;
  task.deadline_seconds =
      std::max(0.0, std::chrono::duration<double>(deadline - clock().Monotonic()).count());
  task.seed = trainer::TaskSeed(job->state.seed(), round->number, client);
  task.model = model;
  task.model_size = file->second.size;
  if (spec.trainer.builtin) {
    task.builtin_trainer = spec.trainer.builtin;
  } else if (spec.trainer.name) {
    task.named_trainer = spec.trainer.name;
  } else {
    task.named_trainer = "job/" + task.job.str();
  }
  task.send_metrics = job->state.clients_send_metrics();
  task.config = spec::Value(spec.trainer.config).ToJson();
  if (const auto mu = spec.aggregation.parameters.find("mu");
      mu != spec.aggregation.parameters.end()) {
    task.mu = std::strtod(mu->second.c_str(), nullptr);
  }
  return task;
}

base::Result<JobEntry*> Core::RequireCollecting(const base::JobName& job, base::RoundNumber round,
                                                int64_t attempt, const base::ClientName& client) {
  JobEntry* entry = FindJob(job);
  if (entry == nullptr) return base::NotFound("no job \"" + job.str() + "\"");
  const Round* current = entry->state.current();
  if (current == nullptr || current->number != round || current->attempt != attempt ||
      current->phase != RoundPhase::kCollecting) {
    return base::FailedPrecondition("round " + std::to_string(round.value()) + " attempt " +
                                        std::to_string(attempt) + " of job \"" + job.str() +
                                        "\" takes no updates any more",
                                    "ask for the current task");
  }
  if (!current->participants.contains(client)) {
    return base::PermissionDenied("client \"" + client.str() + "\" was not selected for round " +
                                  std::to_string(round.value()));
  }
  return entry;
}

}  // namespace fl::aggregator
