#include <algorithm>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/job_watch.h"
#include "cli/output.h"
#include "cli/status_view.h"
#include "cli/target.h"

namespace fl::cli {
namespace {

struct Options {
  std::string job;
  bool watch = false;
  bool exit_on_finish = false;
  bool ascii = false;
  std::string output = "table";
};

Style StyleFor(const Options& options, const Context& context) {
  Style style = context.OutStyle();
  if (options.ascii) style.unicode = false;
  return style;
}

/// Draws over what it drew before.
class Screen {
 public:
  explicit Screen(Context& context) : context_(context) {}

  void Show(const std::string& text) {
    if (lines_ > 0) context_.out << "\033[" << lines_ << "A\033[J";
    lines_ = 0;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string line = text.substr(begin, end - begin);
      // A line that wraps would be two to the terminal and one to us.
      context_.out << (context_.columns > 0 ? Clip(line, static_cast<size_t>(context_.columns))
                                            : line)
                   << "\n";
      ++lines_;
      begin = end + 1;
    }
    context_.out.flush();
  }

 private:
  Context& context_;
  int lines_ = 0;
};

base::Result<std::string> Tree(const Options& options, const OutputFormat& format, Context& context,
                               JobsClient& client, const wire::JobView& job) {
  FL_ASSIGN_OR_RETURN(const std::vector<wire::RoundStatus> rounds, client.Rounds(JobNameOf(job)));
  return StatusTree(job, rounds, StyleFor(options, context), context.clock->Now(),
                    {.all_rounds = format.kind() == OutputFormat::Kind::kWide});
}

base::Status FailureOf(const wire::JobView& job) {
  if (StateOf(job.status).name != "Failed") return base::OkStatus();
  const std::string reason = ReasonOf(job.status);
  return base::FailedPrecondition("job \"" + JobNameOf(job).str() + "\" failed" +
                                  (reason.empty() ? "" : ": " + reason));
}

base::Status Watch(const Options& options, const OutputFormat& format, Context& context,
                   JobsClient& client, const base::JobName& name) {
  Screen screen(context);
  std::string last_line;
  base::Status outcome;
  const base::Status watched = WatchJob(
      context, client, name, std::nullopt, [&](const wire::JobView& job) -> base::Result<bool> {
        if (!format.ForPeople()) {
          FL_RETURN_IF_ERROR(
              format.Print(context, Single(JobsDocument({job}, context.clock->Now()))));
        } else if (context.out_is_terminal) {
          FL_ASSIGN_OR_RETURN(const std::string tree, Tree(options, format, context, client, job));
          screen.Show(tree);
        } else {
          std::string line = StatusLine(job);
          if (line != last_line) context.out << line << "\n";
          last_line = std::move(line);
        }
        if (!options.exit_on_finish || !IsOver(job)) return false;
        outcome = FailureOf(job);
        return true;
      });
  return watched.ok() ? outcome : watched;
}

/// The job to follow where none is named: the only one, or the only one that is not over.
base::Result<base::JobName> ChooseJob(const std::vector<wire::JobView>& jobs) {
  std::vector<base::JobName> running;
  for (const wire::JobView& job : jobs) {
    if (!IsOver(job)) running.push_back(JobNameOf(job));
  }
  if (running.size() == 1) return running[0];
  if (running.empty() && jobs.size() == 1) return JobNameOf(jobs[0]);
  std::string names;
  for (const wire::JobView& job : jobs) names += (names.empty() ? "" : ", ") + JobNameOf(job).str();
  return base::InvalidArgument(jobs.empty() ? "there are no jobs" : "which job? " + names,
                               "name the job to follow");
}

base::Status Status(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  base::JobName name;
  if (!options.job.empty()) {
    FL_ASSIGN_OR_RETURN(name, ParseJobName(options.job));
  }
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<JobsClient> client, OpenJobs(context));
  if (options.watch || options.exit_on_finish) {
    if (name.empty()) {
      FL_ASSIGN_OR_RETURN(const std::vector<wire::JobView> jobs, client->Jobs());
      FL_ASSIGN_OR_RETURN(name, ChooseJob(jobs));
    }
    return Watch(options, format, context, *client, name);
  }
  std::vector<wire::JobView> jobs;
  if (name.empty()) {
    FL_ASSIGN_OR_RETURN(jobs, client->Jobs());
  } else {
    FL_ASSIGN_OR_RETURN(wire::JobView job, client->Job(name));
    jobs.push_back(std::move(job));
  }
  Document document = JobsDocument(jobs, context.clock->Now());
  if (format.ForPeople()) {
    for (const wire::JobView& job : jobs) {
      FL_ASSIGN_OR_RETURN(const std::string tree, Tree(options, format, context, *client, job));
      document.text += tree;
    }
  }
  return format.Print(context, name.empty() ? std::move(document) : Single(std::move(document)));
}

}  // namespace

Command StatusCommand() {
  auto options = std::make_shared<Options>();
  return {
      .name = "status",
      .summary = "Show how a job is doing: rounds and clients as a tree",
      .description =
          "With -w on a terminal the tree is drawn again at each change; in a pipe each change\n"
          "is a line. With --exit-on-finish it ends with the job: 0 if it succeeded, 1 if not.",
      .examples = {{"All jobs", "fl status"},
                   {"Follow one to its end", "fl status digits -w --exit-on-finish"},
                   {"All rounds with all clients", "fl status digits -o wide"}},
      .flags = {{.names = "-w,--watch", .help = "Go on showing changes", .to = &options->watch},
                {.names = "--exit-on-finish",
                 .help = "Follow until the job is over",
                 .to = &options->exit_on_finish},
                {.names = "--ascii", .help = "No characters outside ASCII", .to = &options->ascii},
                OutputFlag(&options->output)},
      .arguments = {{.names = "JOB",
                     .help = "Name of the job; left out: all of them",
                     .to = &options->job,
                     .completes = Completes::kJob}},
      .uses_target = true,
      .interruptible = true,
      .run = [options](Context& context) { return Status(*options, context); }};
}

}  // namespace fl::cli
