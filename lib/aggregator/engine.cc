#include "aggregator/engine.h"

#include <algorithm>

#include "obs/log.h"
#include "strategy/select/selector.h"

namespace fl::aggregator {
namespace {

std::string Join(const std::vector<base::ClientName>& names, size_t limit) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), limit); ++i) {
    text += (i == 0 ? "\"" : ", \"") + names[i].str() + "\"";
  }
  if (names.size() > limit) text += " and " + std::to_string(names.size() - limit) + " more";
  return text;
}

strategy::SelectionSpec ToSelection(const JobState& job) {
  const spec::Selection& from = job.object().spec.selection;
  strategy::SelectionSpec to;
  to.policy = std::string(spec::Name(from.policy.value_or(spec::SelectionPolicy::kRandom)));
  to.clients_per_round = from.clients_per_round.value_or(0);
  if (to.policy == "Random") to.seed = job.seed();
  if (from.sampling_rate) to.sampling_rate = from.sampling_rate->value();
  to.population = from.population;
  return to;
}

base::Duration Deadline(const JobState& job) {
  return std::chrono::seconds(job.object().spec.round_policy.deadline_seconds.value_or(600));
}

}  // namespace

Engine::Engine(Core& core, EngineOptions options) : core_(core), options_(std::move(options)) {}

void Engine::WakeAt(base::Instant at) {
  if (!wake_ || at < *wake_) wake_ = at;
}

std::optional<base::Instant> Engine::Step(std::stop_token stop) {
  Lock lock(core_.mutex);
  bool again = true;
  while (again && !stop.stop_requested()) {
    again = false;
    wake_.reset();
    core_.wakeup.Take();
    core_.task_polls.Sweep(core_.clock().Monotonic());
    core_.watchers.Sweep(core_.clock().Monotonic());
    if (blocked_until_ && *blocked_until_ > core_.clock().Monotonic()) {
      WakeAt(*blocked_until_);
    } else if (JobEntry* job = core_.ActiveJob(); job != nullptr && core_.repository != nullptr) {
      blocked_until_.reset();
      const base::JobName name = job->state.name();
      base::Result<bool> advanced = Advance(*job, lock, stop);
      job = core_.FindJob(name);  // the lock was given up: it may be gone
      if (advanced.ok()) {
        again = *advanced;
      } else if (job != nullptr) {
        HandleError(*job, advanced.status());
        again = true;
      }
    }
    again = again || core_.wakeup.Take();
  }
  for (const Parking* parking : {&core_.task_polls, &core_.watchers}) {
    if (const auto next = parking->NextDeadline()) WakeAt(*next);
  }
  return wake_;
}

void Engine::Run(std::stop_token stop) {
  const std::stop_callback wake(stop, [this] { core_.wakeup.Notify(); });
  while (!stop.stop_requested()) core_.wakeup.Wait(Step(stop));
}

base::Result<bool> Engine::Advance(JobEntry& job, Lock& lock, std::stop_token stop) {
  switch (job.state.Next()) {
    case aggregator::Step::kNothing:
      // A round that was paused gets its whole deadline again.
      core_.collect_deadline.reset();
      return false;
    case aggregator::Step::kStart:
      FL_RETURN_IF_ERROR(StartJob(job));
      return true;
    case aggregator::Step::kSelect:
      return Select(job);
    case aggregator::Step::kCollect:
      return Collect(job);
    case aggregator::Step::kAggregate:
      FL_RETURN_IF_ERROR(Aggregate(job, lock));
      return true;
    case aggregator::Step::kEvaluate:
      return Evaluate(job, lock, stop);
    case aggregator::Step::kPublish:
      FL_RETURN_IF_ERROR(Publish(job, lock));
      return true;
    case aggregator::Step::kFinish:
      FL_RETURN_IF_ERROR(Finish(job, job.state.Ending()));
      return true;
  }
  return false;
}

void Engine::HandleError(JobEntry& job, const base::Status& status) {
  const bool passing = status.retryable() || status.code() == base::Code::kResourceExhausted;
  if (!passing) {
    const base::Status finished =
        Finish(job, {false, std::string(base::Describe(status.code()).name), status.message()});
    if (finished.ok()) return;
  }
  core_.Hold(job, status);
  blocked_until_ = core_.clock().Monotonic() + options_.retry_delay;
}

base::Status Engine::StartJob(JobEntry& job) {
  FL_ASSIGN_OR_RETURN(const registry::VersionInfo current, core_.repository->Current());
  return core_.Append(job, JobStarted{current.version});
}

std::optional<std::vector<base::ClientName>> Engine::Candidates(const JobState& job) {
  const std::vector<base::ClientName> eligible = core_.Eligible(job);
  const spec::Selection& selection = job.object().spec.selection;
  if (selection.policy == spec::SelectionPolicy::kPoisson) return eligible;
  std::vector<base::ClientName> there;
  const base::Instant now = core_.clock().Monotonic();
  bool all_known = true;
  for (const base::ClientName& client : eligible) {
    if (core_.IsConnected(client)) {
      there.push_back(client);
      continue;
    }
    const base::Instant until = *core_.PresentUntil(client, *selecting_since_);
    if (now < until) {
      all_known = false;
      WakeAt(until);
    }
  }
  if (!all_known) return std::nullopt;
  return there;
}

base::Result<bool> Engine::Select(JobEntry& job) {
  const JobState& state = job.state;
  const base::Instant now = core_.clock().Monotonic();
  if (!selecting_since_) selecting_since_ = now;
  const std::optional<std::vector<base::ClientName>> candidates = Candidates(state);
  if (!candidates) return false;

  const strategy::SelectionSpec selection = ToSelection(state);
  const int64_t wanted = selection.clients_per_round > 0 ? selection.clients_per_round : 1;
  const int64_t needed = selection.policy == "Poisson" ? 0 : std::min(wanted, state.Quorum(wanted));
  if (static_cast<int64_t>(candidates->size()) < needed) {
    std::vector<base::ClientName> missing;
    for (const base::ClientName& client : core_.Eligible(state)) {
      if (!core_.IsConnected(client)) missing.push_back(client);
    }
    const std::string there = needed == 1 ? "no client is connected, and a round needs one"
                                          : std::to_string(candidates->size()) + " of the " +
                                                std::to_string(needed) +
                                                " clients that a round needs are connected";
    const std::string reason = there + (missing.empty() ? "; no more match the job's selector"
                                                        : "; not connected: " + Join(missing, 5));
    if (now < *selecting_since_ + Deadline(state)) {
      job.blocked = reason;
      WakeAt(*selecting_since_ + Deadline(state));
      return false;
    }
    selecting_since_.reset();
    FL_RETURN_IF_ERROR(core_.Append(job, RoundMissed{reason}));
    return true;
  }

  FL_ASSIGN_OR_RETURN(const std::unique_ptr<strategy::Selector> selector,
                      strategy::MakeSelector(selection, *core_.options.random));
  RoundStarted round;
  round.round = state.next_round();
  round.attempt = state.next_attempt();
  round.from = *state.model_version();
  FL_ASSIGN_OR_RETURN(round.cohort, selector->Select({.job = state.name(),
                                                      .round = round.round,
                                                      .retry = round.attempt,
                                                      .candidates = *candidates}));
  FL_ASSIGN_OR_RETURN(const registry::VersionInfo from, core_.repository->Get(round.from));
  // Every update, and the aggregate before it is published. Where they do not fit, the job waits
  // for space and says so: a disk that was full for a while costs no job the rounds it has made.
  const uint64_t space = (from.weights_size + (uint64_t{1} << 16)) * (round.cohort.size() + 1);
  FL_RETURN_IF_ERROR(core_.spool.Prepare(state.name(), round.round, round.attempt, space));
  FL_RETURN_IF_ERROR(core_.Append(job, std::move(round)));
  selecting_since_.reset();
  core_.collect_deadline.reset();
  FL_RETURN_IF_ERROR(PrepareCollecting(job));
  return true;
}

base::Status Engine::PrepareCollecting(JobEntry& job) {
  const Round& round = *job.state.current();
  FL_RETURN_IF_ERROR(core_.spool.Prepare(job.state.name(), round.number, round.attempt, 0));
  FL_RETURN_IF_ERROR(core_.spool.KeepOnly(job.state.name(), round.number, round.attempt));
  FL_ASSIGN_OR_RETURN(const registry::OpenedBlob weights,
                      core_.repository->OpenWeights(round.from));
  core_.served.clear();
  FL_RETURN_IF_ERROR(core_.Serve(weights.digest, weights.path));
  core_.collect_deadline = core_.clock().Monotonic() + Deadline(job.state);
  core_.task_polls.Sweep(core_.clock().Monotonic());
  return base::OkStatus();
}

base::Result<bool> Engine::Collect(JobEntry& job) {
  if (!core_.collect_deadline) FL_RETURN_IF_ERROR(PrepareCollecting(job));
  const Round& round = *job.state.current();
  const CollectDecision decision = Decide(round, job.state.Quorum(round.selected),
                                          core_.clock().Monotonic() >= *core_.collect_deadline);
  switch (decision.action) {
    case CollectDecision::Action::kWait:
      WakeAt(*core_.collect_deadline);
      return false;
    case CollectDecision::Action::kClose:
      FL_RETURN_IF_ERROR(core_.Append(job, RoundClosed{decision.reason}));
      break;
    case CollectDecision::Action::kMiss:
      FL_RETURN_IF_ERROR(core_.Append(job, RoundMissed{decision.reason}));
      break;
  }
  core_.collect_deadline.reset();
  core_.task_polls.Sweep(core_.clock().Monotonic());
  return true;
}

base::Status Engine::Finish(JobEntry& job, const JobFinished& ending) {
  if (job.state.base_version()) {
    FL_RETURN_IF_ERROR(
        core_.repository
            ->RecordJobFinished({.job = job.state.name(),
                                 .config_digest = job.state.config_digest(),
                                 .outcome = ending.succeeded ? "Succeeded" : "Failed",
                                 .reason = ending.reason,
                                 .version = job.state.model_version(),
                                 .time = core_.clock().Now()})
            .status());
  }
  FL_RETURN_IF_ERROR(core_.Append(job, ending));
  core_.collect_deadline.reset();
  core_.evaluation.reset();
  core_.served.clear();
  selecting_since_.reset();
  core_.task_polls.Sweep(core_.clock().Monotonic());
  if (job.forget_when_finished) return core_.ForgetJob(base::JobName(job.state.name()));
  return core_.spool.RemoveJob(job.state.name());
}

}  // namespace fl::aggregator
