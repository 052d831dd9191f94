#include "aggregator/views.h"

#include <algorithm>

#include "base/text.h"
#include "spec/json.h"

namespace fl::aggregator {
namespace {

constexpr size_t kRecentRounds = 10;

std::string TimeText(base::Time time) { return time == base::Time() ? "" : base::FormatTime(time); }

std::string_view StateName(Participant::State state) {
  switch (state) {
    case Participant::State::kTraining:
      return "Training";
    case Participant::State::kAccepted:
      return "Accepted";
    case Participant::State::kRejected:
      return "Rejected";
  }
  return "Training";
}

wire::Condition Make(std::string type, bool status, std::string reason, std::string message,
                     base::Time since) {
  return {std::move(type), status, std::move(reason), std::move(message), TimeText(since)};
}

wire::Condition Progressing(const JobEntry& job, const JobEntry* active) {
  const JobState& state = job.state;
  if (state.finished()) {
    return Make("Progressing", false, state.finished()->reason, "the job has finished",
                state.ended());
  }
  const base::Time since = state.started() == base::Time() ? state.created() : state.started();
  if (active != nullptr && active != &job) {
    return Make("Progressing", false, "ModelBusy",
                "waits for job \"" + active->state.name().str() + "\" of the same model",
                state.created());
  }
  if (state.object().spec.suspend) {
    return Make("Progressing", false, "Suspended", "suspended by spec.suspend", since);
  }
  if (!job.blocked.empty()) return Make("Progressing", false, "Waiting", job.blocked, since);
  const Round* round = state.current();
  if (round == nullptr) {
    return Make("Progressing", true, "Selecting",
                "selecting clients for round " + std::to_string(state.next_round().value()), since);
  }
  return Make("Progressing", true, std::string(Name(round->phase)),
              "round " + std::to_string(round->number.value()) + " of " +
                  std::to_string(state.object().spec.rounds),
              round->start);
}

std::vector<wire::Condition> Conditions(const JobEntry& job, const JobEntry* active) {
  const JobState& state = job.state;
  std::vector<wire::Condition> conditions = {Progressing(job, active)};
  if (!state.rounds().empty()) {
    const Round& last = state.rounds().back();
    const bool met =
        last.phase != RoundPhase::kMissed && last.accepted >= state.Quorum(last.selected);
    conditions.push_back(
        Make("QuorumMet", met,
             met ? "EnoughUpdates"
                 : (last.phase == RoundPhase::kMissed ? "QuorumMissed" : "CollectingUpdates"),
             std::to_string(last.accepted) + " of " + base::Count(last.selected, "update") +
                 " in round " + std::to_string(last.number.value()),
             last.start));
  }
  if (state.object().spec.suspend) {
    conditions.push_back(
        Make("Suspended", true, "SpecSuspend", "spec.suspend is true", state.created()));
  }
  if (state.finished()) {
    conditions.push_back(Make(state.finished()->succeeded ? "Succeeded" : "Failed", true,
                              state.finished()->reason, state.finished()->message, state.ended()));
  }
  return conditions;
}

/// Mean time of the last rounds times those to come.
std::optional<double> SecondsLeft(const JobState& state) {
  base::Duration spent{0};
  int64_t counted = 0;
  for (auto round = state.rounds().rbegin(); round != state.rounds().rend() && counted < 5;
       ++round) {
    if (round->phase != RoundPhase::kDone) continue;
    spent += round->end - round->start;
    ++counted;
  }
  if (counted == 0 || state.finished()) return std::nullopt;
  const double mean = std::chrono::duration<double>(spent).count() / static_cast<double>(counted);
  return mean * static_cast<double>(
                    std::max<int64_t>(state.object().spec.rounds - state.rounds_done(), 0));
}

}  // namespace

wire::RoundStatus MakeRoundStatus(const Core& core, const Round& round, bool with_clients) {
  wire::RoundStatus status;
  status.number = round.number.value();
  status.attempt = round.attempt;
  status.phase = Name(round.phase);
  status.start_time = TimeText(round.start);
  status.end_time = TimeText(round.end);
  if (round.phase == RoundPhase::kCollecting && core.collect_deadline) {
    status.deadline =
        base::FormatTime(core.clock().Now() + (*core.collect_deadline - core.clock().Monotonic()));
  }
  status.selected = round.selected;
  status.accepted = round.accepted;
  status.rejected = round.rejected;
  if (round.version) status.version = round.version->value();
  status.metrics = round.metrics;
  status.message = round.message;
  if (!with_clients) return status;
  const bool over = round.phase != RoundPhase::kCollecting;
  // Who took part in a cohort that claims amplification is a secret of administrators, and these
  // see this answer only; sample counts go no further than here.
  for (const auto& [client, participant] : round.participants) {
    const bool late = over && participant.state == Participant::State::kTraining;
    status.clients.push_back({client.str(),
                              late ? "Late" : std::string(StateName(participant.state)),
                              participant.reason, participant.update.samples.value_or(0)});
  }
  return status;
}

wire::JobStatus MakeJobStatus(const Core& core, const JobEntry& job, const JobEntry* active) {
  const JobState& state = job.state;
  wire::JobStatus status;
  status.observed_attempt = state.object().spec.attempt;
  status.conditions = Conditions(job, active);
  const std::deque<Round>& rounds = state.rounds();
  if (!rounds.empty()) status.round = MakeRoundStatus(core, rounds.back(), false);
  const size_t first = rounds.size() > kRecentRounds ? rounds.size() - kRecentRounds : 0;
  for (size_t i = first; i < rounds.size(); ++i) {
    status.recent_rounds.push_back(MakeRoundStatus(core, rounds[i], false));
  }
  status.metrics = state.metrics();
  if (state.base_version()) status.base_version = state.base_version()->value();
  if (state.model_version()) status.model_version = state.model_version()->value();
  status.rounds_done = state.rounds_done();
  status.rounds_total = state.object().spec.rounds;
  status.start_time = TimeText(state.started());
  status.end_time = TimeText(state.ended());
  status.seconds_left = SecondsLeft(state);
  return status;
}

wire::JobView MakeJobView(const Core& core, const JobEntry& job, const JobEntry* active) {
  return {spec::ToJson(job.state.object()), MakeJobStatus(core, job, active), core.revision};
}

std::vector<wire::ClientStatus> MakeClientStatuses(const Core& core) {
  std::vector<wire::ClientStatus> statuses;
  for (const auto& [name, client] : core.catalog.clients()) {
    wire::ClientStatus status;
    status.name = name.str();
    status.labels = client.metadata.labels;
    status.fenced = client.spec.fenced;
    if (const auto found = core.presence.find(name); found != core.presence.end()) {
      const Presence& presence = found->second;
      status.connected = presence.polls > 0;
      status.last_seen = TimeText(presence.last_seen);
      status.software = presence.software;
      status.rounds_accepted = presence.accepted;
      status.rounds_rejected = presence.rejected;
      status.last_error = presence.last_error;
    }
    if (const std::optional<wire::Task> task = core.TaskFor(name)) status.task = task->Key();
    statuses.push_back(std::move(status));
  }
  return statuses;
}

wire::AggregatorStatus MakeAggregatorStatus(Core& core) {
  wire::AggregatorStatus status;
  status.id = core.options.aggregator_id;
  status.software = core.options.software;
  if (core.catalog.model()) status.model = core.catalog.model()->metadata.name;
  if (core.repository != nullptr) status.registry = core.repository->store().Name();
  status.revision = core.revision;
  status.jobs = static_cast<int64_t>(core.jobs.size());
  if (const JobEntry* active = core.ActiveJob()) status.active_job = active->state.name().str();
  status.clients = static_cast<int64_t>(core.catalog.clients().size());
  for (const auto& [name, client] : core.catalog.clients()) {
    status.connected += core.IsConnected(name) ? 1 : 0;
  }
  return status;
}

base::Result<std::vector<wire::VersionStatus>> MakeVersionStatuses(
    registry::ModelRepository& repository) {
  FL_ASSIGN_OR_RETURN(const std::vector<registry::VersionInfo> versions, repository.List());
  FL_ASSIGN_OR_RETURN(const std::optional<base::VersionNumber> pinned, repository.Pinned());
  FL_ASSIGN_OR_RETURN(const std::optional<base::VersionNumber> promoted, repository.Promoted());
  const base::Result<registry::VersionInfo> current = repository.Current();
  std::vector<wire::VersionStatus> statuses;
  for (const registry::VersionInfo& version : versions) {
    wire::VersionStatus status;
    status.version = version.version.value();
    status.digest = version.manifest.ToString();
    if (version.parent) status.parent = version.parent->version.value();
    status.job = version.job.str();
    status.round = version.round.value();
    status.algorithm = version.algorithm;
    status.contributors = version.contributors;
    status.metrics = version.metrics;
    status.size = version.weights_size;
    status.created = base::FormatTime(version.created);
    status.pruned = version.pruned;
    if (&version == &versions.back()) status.tags.push_back("latest");
    if (promoted == version.version) status.tags.push_back("promoted");
    if (pinned == version.version) status.tags.push_back("pinned");
    if (current.ok() && current->version == version.version) status.tags.push_back("current");
    statuses.push_back(std::move(status));
  }
  return statuses;
}

}  // namespace fl::aggregator
