#include "agent/task_runner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "agent/public_reason.h"
#include "base/file_digest.h"
#include "obs/log.h"
#include "trainer/dataset.h"
#include "wire/paths.h"

namespace fl::agent {
namespace {

using base::Result;
using base::Status;

/// Deadlines further away than this are none (and would not fit an Instant).
constexpr double kFarAwaySeconds = 1e9;

std::optional<base::Instant> DeadlineOf(const wire::Task& task, base::Instant received) {
  if (!(task.deadline_seconds < kFarAwaySeconds)) return std::nullopt;
  const double seconds = std::max(task.deadline_seconds, 0.0);
  return received +
         std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(seconds));
}

trainer::TaskKind KindOf(const wire::Task& task) {
  return task.kind == wire::TaskKind::kTrain ? trainer::TaskKind::kTrain
                                             : trainer::TaskKind::kEvaluate;
}

std::string NamesOf(const TrainerConfigs& trainers) {
  std::string names;
  for (const auto& [name, config] : trainers) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

}  // namespace

Status CheckFloors(const Floors& floors, const wire::Task& task) {
  const auto refuse = [&task](const std::string& demand) {
    return base::PermissionDenied(
        "this client's own configuration demands " + demand + ", which the task \"" + task.Key() +
            "\" does not promise",
        "run the job with it, or have the client's owner change `require` in its configuration");
  };
  // A task says nothing of these yet, so that whoever demands one takes no task.
  if (floors.secure_aggregation) return refuse("secure aggregation");
  if (floors.differential_privacy) return refuse("differential privacy");
  if (floors.minimum_cohort > 1) {
    return refuse("a cohort of at least " + std::to_string(floors.minimum_cohort));
  }
  return base::OkStatus();
}

Result<std::unique_ptr<TaskRunner>> TaskRunner::Create(Options options, Session& session,
                                                       BlobCache& blobs, Seams seams,
                                                       TrainerFactory make_trainer) {
  FL_RETURN_IF_ERROR(base::MakeDirectories(options.folder, 0700));
  return std::unique_ptr<TaskRunner>(new TaskRunner(std::move(options), session, blobs,
                                                    std::move(seams), std::move(make_trainer)));
}

TaskRunner::TaskRunner(Options options, Session& session, BlobCache& blobs, Seams seams,
                       TrainerFactory make_trainer)
    : options_(std::move(options)),
      weights_(options_.folder / "update.safetensors"),
      result_(options_.folder / "result.json"),
      finished_(options_.folder / "finished.json"),
      session_(session),
      blobs_(blobs),
      seams_(seams),
      sender_(session, std::move(seams)),
      make_trainer_(std::move(make_trainer)) {}

bool TaskRunner::Run(const wire::Task& task, base::Instant received, const TaskStop& stop) {
  const base::Instant start = seams_.clock.Monotonic();
  const base::ClientName& client = session_.client();
  obs::Debug("task started", {{"client", client}, {"task", task.Key()}});
  Result<Delivery> delivery = Do(task, received, stop);

  const bool called_off = stop.withdrawn.stop_requested() || stop.now.stop_requested();
  Status failure = delivery.ok() ? Status() : delivery.status();
  if (delivery.ok() && delivery->kind == Delivery::Kind::kRefused) {
    failure = delivery->status.WithContext("the aggregator refused it");
  }
  if (failure.code() == base::Code::kResourceExhausted) {
    failure = failure.WithHint("free some space on the client's disk");
  }
  if (!failure.ok() && !called_off) {
    obs::Error("task failed", {{"client", client},
                               {"task", task.Key()},
                               {"reason", failure.message()},
                               {"hint", failure.hint()}});
    delivery = sender_.SendFailure(task, PublicReason(failure, LocalPaths()), stop);
    if (delivery.ok() && delivery->kind == Delivery::Kind::kAccepted) return true;
  }
  if (!delivery.ok()) {
    if (called_off) {
      obs::Info("task called off", {{"client", client}, {"task", task.Key()}});
    } else {
      obs::Error("the aggregator could not be told",
                 {{"client", client}, {"task", task.Key()}, {"reason", delivery.status()}});
    }
    return false;
  }
  switch (delivery->kind) {
    case Delivery::Kind::kAccepted:
      obs::Info("task done", {{"client", client},
                              {"task", task.Key()},
                              {"took", base::FormatDuration(seams_.clock.Monotonic() - start)}});
      return true;
    case Delivery::Kind::kLate:
      obs::Warning(
          "the round went on without this client; its work is dropped",
          {{"client", client}, {"task", task.Key()}, {"reason", delivery->status.message()}});
      return true;
    case Delivery::Kind::kRefused:
      obs::Error("the aggregator refused to hear of a failure",
                 {{"client", client}, {"task", task.Key()}, {"reason", delivery->status}});
      return false;
  }
  return false;
}

Result<Delivery> TaskRunner::Do(const wire::Task& task, base::Instant received,
                                const TaskStop& stop) {
  FL_RETURN_IF_ERROR(CheckFloors(options_.require, task));
  return task.kind == wire::TaskKind::kTrain ? Train(task, received, stop)
                                             : Evaluate(task, received, stop);
}

Result<Delivery> TaskRunner::Train(const wire::Task& task, base::Instant received,
                                   const TaskStop& stop) {
  const base::Digest cause = CauseOf(task);
  std::optional<FinishedUpdate> update = ReadFinishedUpdate(finished_, cause, weights_);
  if (update) {
    obs::Info("the update of this task was ready before; sending it",
              {{"client", session_.client()}, {"task", task.Key()}});
  } else {
    FL_RETURN_IF_ERROR(Forget());
    FL_ASSIGN_OR_RETURN(const trainer::TaskResult result, RunTrainer(task, received, stop));
    // The trainer module has checked the file; this is what the aggregator will compare with.
    FL_ASSIGN_OR_RETURN(const base::FileDigest file, base::DigestOfFile(weights_));
    update = FinishedUpdate{.cause = cause,
                            .digest = file.digest,
                            .size = file.size,
                            .samples = result.num_samples,
                            .steps = result.num_steps,
                            .metrics = result.metrics};
    FL_RETURN_IF_ERROR(WriteFinishedUpdate(finished_, *update));
  }
  FL_ASSIGN_OR_RETURN(const Delivery delivery, sender_.SendUpdate(task, *update, weights_, stop));
  FL_RETURN_IF_ERROR(Forget());
  return delivery;
}

Result<Delivery> TaskRunner::Evaluate(const wire::Task& task, base::Instant received,
                                      const TaskStop& stop) {
  if (!task.send_metrics) {
    return base::FailedPrecondition("the task asks for an evaluation and forbids to send metrics");
  }
  FL_ASSIGN_OR_RETURN(const trainer::TaskResult result, RunTrainer(task, received, stop));
  return sender_.SendEvaluation(
      task, {.attempt = task.attempt, .samples = result.num_samples, .metrics = result.metrics},
      stop);
}

Result<trainer::TaskResult> TaskRunner::RunTrainer(const wire::Task& task, base::Instant received,
                                                   const TaskStop& stop) {
  FL_ASSIGN_OR_RETURN(trainer::Trainer* const program, FindTrainer(task));
  FL_ASSIGN_OR_RETURN(const BlobCache::Lease model, FetchModel(task, stop));
  const bool trains = task.kind == wire::TaskKind::kTrain;
  const trainer::Task work{.kind = KindOf(task),
                           .job = task.job,
                           .round = task.round,
                           .attempt = task.attempt,
                           .client = session_.client(),
                           // Aggregators send trainer::TaskSeed, which fits.
                           .seed = static_cast<uint32_t>(task.seed ^ (task.seed >> 32)),
                           .config = task.config,
                           .mu = task.mu,
                           .model = model.path(),
                           .output = trains ? weights_ : base::Path(),
                           .result = result_,
                           .dataset = options_.client.dataset};
  Result<trainer::TaskResult> result =
      program->Run(work, DeadlineOf(task, received), stop.withdrawn);
  FL_RETURN_IF_ERROR(base::RemoveFile(result_));
  return result;
}

Result<BlobCache::Lease> TaskRunner::FetchModel(const wire::Task& task, const TaskStop& stop) {
  const auto fetch = [&](const BlobCache::MakeRequest& make) {
    return SendUntilAnswered(session_, seams_, stop.withdrawn,
                             [&]() -> Result<transport::ClientRequest> {
                               FL_ASSIGN_OR_RETURN(transport::ClientRequest request, make());
                               request.url = wire::BlobPath(task.job, task.model);
                               return request;
                             });
  };
  Result<BlobCache::Lease> lease = blobs_.Get(task.model, task.model_size, fetch, stop.withdrawn);
  if (!lease.ok()) return lease.status().WithContext("the model could not be fetched");
  return lease;
}

Result<trainer::Trainer*> TaskRunner::FindTrainer(const wire::Task& task) {
  const TrainerConfig* config = nullptr;
  std::string name;
  if (task.named_trainer) {
    name = *task.named_trainer;
    const auto found = options_.trainers.find(name);
    if (found == options_.trainers.end()) {
      return base::NotFound(
          "this client has no trainer \"" + name + "\"; it has: " + NamesOf(options_.trainers),
          "add it under `trainers` in the client's configuration");
    }
    config = &found->second;
  } else if (task.builtin_trainer) {
    name = *task.builtin_trainer;
  } else {
    return base::InvalidArgument("the task names no trainer");
  }
  // A program and a built-in one may have the same name.
  const std::string key = (config != nullptr ? "program " : "built-in ") + name;
  const auto known = trainers_.find(key);
  if (known != trainers_.end()) return known->second.get();
  FL_ASSIGN_OR_RETURN(
      std::unique_ptr<trainer::Trainer> made,
      make_trainer_(
          name, config,
          config != nullptr ? options_.folder / ("trainer-" + name + ".log") : base::Path()));
  return (trainers_[key] = std::move(made)).get();
}

base::Digest TaskRunner::CauseOf(const wire::Task& task) const {
  wire::Task cause = task;
  cause.deadline_seconds = 0;
  std::string text = wire::ToJson(cause) + "\n" + options_.client.dataset + "\n";
  if (task.named_trainer) {
    const auto found = options_.trainers.find(*task.named_trainer);
    if (found != options_.trainers.end()) {
      for (const std::string& word : found->second.command) text += word + "\n";
      for (const auto& [name, value] : found->second.env) text += name + "=" + value + "\n";
    }
  }
  return base::Digest::Of(text);
}

std::vector<base::Path> TaskRunner::LocalPaths() const {
  std::vector<base::Path> paths = {options_.folder};
  const Result<trainer::DatasetSpec> dataset = trainer::DatasetSpec::Parse(options_.client.dataset);
  if (dataset.ok()) paths.emplace_back(dataset->path);
  for (const auto& [name, trainer] : options_.trainers) {
    paths.insert(paths.end(), trainer.command.begin(), trainer.command.end());
    if (trainer.working_directory) paths.push_back(*trainer.working_directory);
  }
  return paths;
}

Status TaskRunner::Forget() const {
  // The record first: without it the weights are nothing.
  FL_RETURN_IF_ERROR(base::RemoveFile(finished_));
  return base::RemoveFile(weights_);
}

}  // namespace fl::agent
