#include "aggregator/job.h"

#include <algorithm>

#include "base/text.h"
#include "spec/defaults.h"
#include "spec/json.h"

namespace fl::aggregator {

std::string_view Name(RoundPhase phase) {
  switch (phase) {
    case RoundPhase::kCollecting:
      return "Collecting";
    case RoundPhase::kAggregating:
      return "Aggregating";
    case RoundPhase::kEvaluating:
      return "Evaluating";
    case RoundPhase::kPublishing:
      return "Publishing";
    case RoundPhase::kDone:
      return "Done";
    case RoundPhase::kMissed:
      return "Missed";
  }
  return "Unknown";
}

CollectDecision Decide(const Round& round, int64_t quorum, bool deadline_passed) {
  using Action = CollectDecision::Action;
  const std::string got = std::to_string(round.accepted) + " of " +
                          base::Count(round.selected, "update") + " (quorum " +
                          std::to_string(quorum) + ")";
  if (round.selected - round.rejected < quorum) {
    std::string reason = round.selected < quorum
                             ? "only " + base::Count(round.selected, "client") +
                                   " selected, quorum " + std::to_string(quorum)
                             : base::Count(round.rejected, "client") +
                                   " failed, so that the quorum of " + std::to_string(quorum) +
                                   " cannot be reached";
    return {Action::kMiss, std::move(reason)};
  }
  const bool enough = round.accepted >= quorum && round.accepted > 0;
  if (round.waiting_for() == 0) {
    if (enough) return {Action::kClose, "all have answered: " + got};
    return {Action::kMiss, "all have answered, but with " + got};
  }
  if (!deadline_passed) return {};
  if (enough) return {Action::kClose, "deadline: " + got};
  return {Action::kMiss, "deadline passed with " + got};
}

ConvergenceDecision Decide(const spec::Convergence& convergence,
                           const std::vector<double>& history) {
  if (history.empty()) return {};
  const double sign = convergence.mode == spec::ConvergenceMode::kMin ? -1 : 1;
  if (convergence.target && sign * history.back() >= sign * convergence.target->value()) {
    return {true, convergence.metric + " reached " + convergence.target->text()};
  }
  if (convergence.patience) {
    const double delta = convergence.min_delta ? convergence.min_delta->value() : 0;
    double best = sign * history.front();
    int64_t since = 0;
    for (size_t i = 1; i < history.size(); ++i) {
      if (sign * history[i] > best + delta) {
        best = sign * history[i];
        since = 0;
      } else {
        ++since;
      }
    }
    if (since >= *convergence.patience) {
      return {true, convergence.metric + " has not got better for " + base::Count(since, "round")};
    }
  }
  return {};
}

base::Status JobState::Check(const Event& event) const {
  if (const auto* configured = std::get_if<JobConfigured>(&event.body)) {
    return spec::FromJson<spec::FederatedLearningJob>(configured->object).status();
  }
  if (!configured_) {
    return base::DataLoss("the journal does not begin with the job's configuration");
  }
  if (const auto* started = std::get_if<RoundStarted>(&event.body)) {
    if (current() == nullptr && started->round == next_round()) return base::OkStatus();
    return base::DataLoss("journal: round " + std::to_string(started->round.value()) +
                          " starts out of order");
  }
  if (const auto* update = std::get_if<UpdateAccepted>(&event.body)) {
    return RequireParticipant(update->client, "update-accepted");
  }
  if (const auto* failed = std::get_if<ClientFailed>(&event.body)) {
    return RequireParticipant(failed->client, "client-failed");
  }
  if (std::holds_alternative<RoundClosed>(event.body)) {
    return RequirePhase(RoundPhase::kCollecting, "round-closed");
  }
  if (std::holds_alternative<RoundAggregated>(event.body)) {
    return RequirePhase(RoundPhase::kAggregating, "aggregated");
  }
  if (std::holds_alternative<RoundEvaluated>(event.body)) {
    return RequirePhase(RoundPhase::kEvaluating, "evaluated");
  }
  if (std::holds_alternative<RoundPublished>(event.body)) {
    return RequirePhase(RoundPhase::kPublishing, "published");
  }
  return base::OkStatus();
}

base::Status JobState::Apply(const Event& event) {
  FL_RETURN_IF_ERROR(Check(event));
  std::visit([&](const auto& body) { On(body, event.time); }, event.body);
  return base::OkStatus();
}

const Round* JobState::current() const {
  if (rounds_.empty()) return nullptr;
  const Round& last = rounds_.back();
  return last.phase == RoundPhase::kDone || last.phase == RoundPhase::kMissed ? nullptr : &last;
}

Round* JobState::Running() { return const_cast<Round*>(current()); }

int64_t JobState::Quorum(int64_t cohort) const {
  const spec::Selection& selection = object_.spec.selection;
  if (selection.quorum) return *selection.quorum;
  return selection.policy == spec::SelectionPolicy::kPoisson ? 1 : std::max<int64_t>(cohort, 1);
}

Step JobState::Next() const {
  if (finished_) return Step::kNothing;
  if (object_.spec.aborted) return Step::kFinish;
  const Round* round = current();
  if (round == nullptr) {
    if (!base_version_) return object_.spec.suspend ? Step::kNothing : Step::kStart;
    if (rounds_done_ >= object_.spec.rounds || convergence_.converged) return Step::kFinish;
    const spec::RoundPolicy& policy = object_.spec.round_policy;
    if (misses_ > 0 && (policy.on_missed_quorum == spec::OnMissedQuorum::kFail ||
                        misses_ > policy.max_retries.value_or(0))) {
      return Step::kFinish;
    }
    return object_.spec.suspend ? Step::kNothing : Step::kSelect;
  }
  switch (round->phase) {
    case RoundPhase::kCollecting:
      return object_.spec.suspend ? Step::kNothing : Step::kCollect;
    case RoundPhase::kAggregating:
      return Step::kAggregate;
    case RoundPhase::kEvaluating:
      return Step::kEvaluate;
    default:
      return Step::kPublish;
  }
}

JobFinished JobState::Ending() const {
  if (object_.spec.aborted) return {false, "Aborted", "aborted by an administrator"};
  if (convergence_.converged) return {true, "Converged", convergence_.message};
  if (rounds_done_ >= object_.spec.rounds) {
    return {true, "RoundsCompleted", base::AllOf(rounds_done_, "round") + " completed"};
  }
  return {false, "QuorumMissed",
          "round " + std::to_string(next_round().value()) + " was missed " +
              base::Count(misses_, "time") + "; the last: " + last_miss_};
}

base::Status JobState::RequirePhase(RoundPhase phase, std::string_view event) const {
  const Round* round = current();
  if (round != nullptr && round->phase == phase) return base::OkStatus();
  return base::DataLoss("journal: \"" + std::string(event) + "\" does not follow from " +
                        (round == nullptr ? "no round" : std::string(Name(round->phase))));
}

base::Status JobState::RequireParticipant(const base::ClientName& client,
                                          std::string_view event) const {
  FL_RETURN_IF_ERROR(RequirePhase(RoundPhase::kCollecting, event));
  if (current()->participants.contains(client)) return base::OkStatus();
  return base::DataLoss("journal: \"" + std::string(event) + "\" of client \"" + client.str() +
                        "\", which was not selected");
}

void JobState::On(const JobConfigured& event, base::Time time) {
  spec::FederatedLearningJob object =
      spec::FromJson<spec::FederatedLearningJob>(event.object).value();
  spec::ApplyDefaults(object);
  if (!configured_) created_ = time;
  const bool retried = configured_ && object.spec.attempt > object_.spec.attempt;
  const bool longer = configured_ && object.spec.rounds > object_.spec.rounds;
  if (retried) {
    misses_ = 0;
    last_miss_.clear();
  }
  if (finished_ &&
      ((retried && !finished_->succeeded) || (longer && finished_->reason == "RoundsCompleted"))) {
    finished_.reset();
    ended_ = {};
  }
  object_ = std::move(object);
  config_digest_ = event.config_digest;
  seed_ = event.seed;
  configured_ = true;
}

void JobState::On(const JobStarted& event, base::Time time) {
  base_version_ = event.base_version;
  model_version_ = event.base_version;
  started_ = time;
}

void JobState::On(const RoundStarted& event, base::Time time) {
  Round round;
  round.number = event.round;
  round.attempt = event.attempt;
  round.from = event.from;
  round.start = time;
  round.selected = static_cast<int64_t>(event.cohort.size());
  for (const base::ClientName& client : event.cohort) round.participants[client];
  rounds_.push_back(std::move(round));
  next_attempt_ = event.attempt + 1;
  if (rounds_.size() > kDetailedRounds) {
    rounds_[rounds_.size() - kDetailedRounds - 1].participants.clear();
  }
}

void JobState::On(const UpdateAccepted& event, base::Time) {
  Round& round = *Running();
  Participant& participant = round.participants.at(event.client);
  if (participant.state == Participant::State::kRejected) --round.rejected;
  if (participant.state != Participant::State::kAccepted) ++round.accepted;
  participant = {Participant::State::kAccepted, "", event};
}

void JobState::On(const ClientFailed& event, base::Time) {
  Round& round = *Running();
  Participant& participant = round.participants.at(event.client);
  if (participant.state == Participant::State::kTraining) {
    ++round.rejected;
    participant.state = Participant::State::kRejected;
  }
  if (participant.state == Participant::State::kRejected) participant.reason = event.reason;
}

void JobState::On(const RoundClosed& event, base::Time) {
  Running()->phase = RoundPhase::kAggregating;
  Running()->message = event.reason;
}

void JobState::On(const RoundMissed& event, base::Time time) {
  Round* round = Running();
  if (round == nullptr) {
    // Not enough clients were there to start: an attempt all the same.
    Round missed;
    missed.number = next_round();
    missed.attempt = next_attempt_++;
    missed.from = model_version_.value_or(base::VersionNumber());
    missed.start = time;
    rounds_.push_back(std::move(missed));
    round = &rounds_.back();
  }
  round->phase = RoundPhase::kMissed;
  round->message = event.reason;
  round->end = time;
  ++misses_;
  last_miss_ = event.reason;
}

void JobState::On(const RoundAggregated& event, base::Time) {
  Running()->candidate = event;
  Running()->metrics = event.train_metrics;
  Running()->phase = RoundPhase::kEvaluating;
}

void JobState::On(const RoundEvaluated& event, base::Time) {
  Round& round = *Running();
  for (const auto& [name, value] : event.metrics) round.metrics[name] = value;
  if (!event.message.empty()) round.message = event.message;
  round.phase = RoundPhase::kPublishing;
}

void JobState::On(const RoundPublished& event, base::Time time) {
  Round& round = *Running();
  round.version = event.version;
  round.phase = RoundPhase::kDone;
  round.end = time;
  model_version_ = event.version;
  metrics_ = round.metrics;
  ++rounds_done_;
  next_attempt_ = 0;
  misses_ = 0;
  if (const std::optional<spec::Convergence>& rule = object_.spec.convergence) {
    const auto found = round.metrics.find(rule->metric);
    if (found != round.metrics.end()) convergence_history_.push_back(found->second);
    convergence_ = Decide(*rule, convergence_history_);
  }
}

void JobState::On(const JobFinished& event, base::Time time) {
  if (Round* round = Running()) {
    round->phase = RoundPhase::kMissed;
    round->message = event.message;
    round->end = time;
  }
  finished_ = event;
  ended_ = time;
}

}  // namespace fl::aggregator
