#include <memory>

#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/job_watch.h"
#include "cli/target.h"

namespace fl::cli {
namespace {

struct Options {
  std::string job;
  bool follow = false;
};

Ink InkOf(const std::string& level) {
  if (level == "error") return Ink::kRed;
  if (level == "warning") return Ink::kYellow;
  return Ink::kPlain;
}

void Print(Context& context, const std::vector<wire::JobEvent>& events, uint64_t* last) {
  const Style style = context.OutStyle();
  for (const wire::JobEvent& event : events) {
    context.out << style.Paint(Ink::kDim, event.time) << " "
                << style.Paint(InkOf(event.level), event.level) << " " << event.message << "\n";
    *last = event.sequence;
  }
  context.out.flush();
}

base::Status Logs(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const base::JobName job, ParseJobName(options.job));
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<JobsClient> client, OpenJobs(context));
  uint64_t last = 0;
  FL_ASSIGN_OR_RETURN(std::vector<wire::JobEvent> events, client->Events(job, 0, {}));
  Print(context, events, &last);
  while (options.follow) {
    if (context.stop.stop_requested() || context.output_closed()) {
      return base::Cancelled("interrupted");
    }
    FL_ASSIGN_OR_RETURN(const wire::JobView view, client->Job(job));
    const bool over = IsOver(view);
    const base::Duration wait = over ? base::Duration() : std::chrono::seconds(30);
    FL_ASSIGN_OR_RETURN(events, client->Events(job, last, wait));
    Print(context, events, &last);
    if (over && events.empty()) break;
  }
  return base::OkStatus();
}

}  // namespace

Command LogsCommand() {
  auto options = std::make_shared<Options>();
  return {.name = "logs",
          .summary = "Print the log of a job",
          .examples = {{"What happened so far", "fl logs digits"},
                       {"And what happens next, until the job is over", "fl logs digits -f"}},
          .flags = {{.names = "-f,--follow",
                     .help = "Go on until the job is over",
                     .to = &options->follow}},
          .arguments = {{.names = "JOB",
                         .help = "Name of the job",
                         .to = &options->job,
                         .required = true,
                         .completes = Completes::kJob}},
          .uses_target = true,
          .interruptible = true,
          .run = [options](Context& context) { return Logs(*options, context); }};
}

}  // namespace fl::cli
