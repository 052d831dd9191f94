#include <charconv>
#include <memory>
#include <optional>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/job_watch.h"
#include "cli/target.h"

namespace fl::cli {
namespace {

struct Options {
  std::string job;
  std::string until = "finished";
  std::optional<base::Duration> timeout;
};

struct Goal {
  enum class Kind { kFinished, kSucceeded, kFailed, kRound } kind = Kind::kFinished;
  int64_t round = 0;
};

base::Result<Goal> ParseGoal(const std::string& text) {
  if (text == "finished") return Goal{Goal::Kind::kFinished};
  if (text == "succeeded") return Goal{Goal::Kind::kSucceeded};
  if (text == "failed") return Goal{Goal::Kind::kFailed};
  constexpr std::string_view kRound = "round=";
  if (text.starts_with(kRound)) {
    Goal goal{Goal::Kind::kRound};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + kRound.size(), end, goal.round);
    if (error == std::errc() && stop == end && goal.round >= 1) return goal;
  }
  return base::InvalidArgument("--for: \"" + text + "\" is nothing to wait for",
                               "write --for=finished, succeeded, failed or round=N");
}

/// True when the goal is reached; an error when it cannot be any more.
base::Result<bool> Reached(const Goal& goal, const wire::JobView& job) {
  if (goal.kind == Goal::Kind::kRound && job.status.rounds_done >= goal.round) return true;
  if (!IsOver(job)) return false;
  const JobState state = StateOf(job.status);
  const bool succeeded = state.name == "Succeeded";
  if (goal.kind == Goal::Kind::kFinished) return true;
  if (goal.kind == Goal::Kind::kSucceeded && succeeded) return true;
  if (goal.kind == Goal::Kind::kFailed && !succeeded) return true;
  std::string message = "job \"" + JobNameOf(job).str() + "\" " +
                        (succeeded ? "succeeded" : "failed") + " after " +
                        base::Count(job.status.rounds_done, "round");
  const std::string reason = ReasonOf(job.status);
  if (!reason.empty()) message += ": " + reason;
  return base::FailedPrecondition(std::move(message));
}

base::Status Wait(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const base::JobName job, ParseJobName(options.job));
  FL_ASSIGN_OR_RETURN(const Goal goal, ParseGoal(options.until));
  std::optional<base::Instant> deadline;
  if (options.timeout) deadline = context.clock->Monotonic() + *options.timeout;
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<JobsClient> client, OpenJobs(context));
  return WatchJob(context, *client, job, deadline,
                  [&](const wire::JobView& view) -> base::Result<bool> {
                    FL_ASSIGN_OR_RETURN(const bool reached, Reached(goal, view));
                    if (reached) {
                      context.out << "job/" << job << " " << StateOf(view.status).name << " round "
                                  << view.status.rounds_done << "\n";
                    }
                    return reached;
                  });
}

}  // namespace

Command WaitCommand() {
  auto options = std::make_shared<Options>();
  return {.name = "wait",
          .summary = "Wait for a job",
          .description =
              "Exits 0 when it has come so far, 1 when it cannot any more, 124 when the\n"
              "time is over.",
          .examples = {{"Until it is over, well or not", "fl wait digits"},
                       {"In a script", "fl wait digits --for=succeeded --timeout 1h"},
                       {"Until round 5 is done", "fl wait digits --for=round=5"}},
          .flags = {{.names = "--for",
                     .value = "WHAT",
                     .help = "finished, succeeded, failed or round=N",
                     .to = &options->until},
                    {.names = "--timeout",
                     .value = "DURATION",
                     .help = "E.g. 60s or 1h30m; left out: no limit",
                     .to = &options->timeout}},
          .arguments = {{.names = "JOB",
                         .help = "Name of the job",
                         .to = &options->job,
                         .required = true,
                         .completes = Completes::kJob}},
          .uses_target = true,
          .interruptible = true,
          .run = [options](Context& context) { return Wait(*options, context); }};
}

}  // namespace fl::cli
