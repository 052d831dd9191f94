#include <memory>

#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/target.h"

namespace fl::cli {
namespace {

struct Options {
  std::vector<std::string> jobs;
  std::string output = "table";
};

base::Status Act(const Options& options, JobAction action, std::string_view done,
                 Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  std::vector<base::JobName> names;
  for (const std::string& name : options.jobs) {
    FL_ASSIGN_OR_RETURN(base::JobName job, ParseJobName(name));
    names.push_back(std::move(job));
  }
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<JobsClient> client, OpenJobs(context));
  std::vector<wire::JobView> views;
  for (const base::JobName& job : names) {
    FL_ASSIGN_OR_RETURN(wire::JobView view, client->Act(job, action));
    if (format.ForPeople()) {
      context.out << "job/" << job << " " << done << "\n";
      context.out.flush();
    }
    views.push_back(std::move(view));
  }
  if (format.ForPeople()) return base::OkStatus();
  Document document = JobsDocument(views, context.clock->Now());
  return format.Print(context, views.size() == 1 ? Single(std::move(document)) : document);
}

Command ActionCommand(JobAction action, std::string done, std::string summary,
                      std::string description, std::vector<Example> examples) {
  auto options = std::make_shared<Options>();
  return {.name = std::string(Name(action)),
          .summary = std::move(summary),
          .description = std::move(description),
          .examples = std::move(examples),
          .flags = {OutputFlag(&options->output)},
          .arguments = {{.names = "JOB",
                         .help = "Names of jobs",
                         .to = &options->jobs,
                         .required = true,
                         .completes = Completes::kJob}},
          .uses_target = true,
          .interruptible = true,
          .run = [options, action, done](Context& context) {
            return Act(*options, action, done, context);
          }};
}

}  // namespace

Command PauseCommand() {
  return ActionCommand(JobAction::kPause, "paused", "Stop a job until it is resumed",
                       "The round that runs is held: updates that were accepted are kept, and it\n"
                       "goes on where it was.",
                       {{"Make room for another job", "fl pause digits"}});
}

Command ResumeCommand() {
  return ActionCommand(JobAction::kResume, "resumed", "Go on with a paused job", "",
                       {{"Where it stopped", "fl resume digits"}});
}

Command AbortCommand() {
  return ActionCommand(JobAction::kAbort, "aborted", "End a job for good",
                       "The versions it published stay. To train on, submit it under a new name.",
                       {{"Stop training", "fl abort digits"}});
}

Command RetryCommand() {
  return ActionCommand(JobAction::kRetry, "retried", "Start a failed job again",
                       "It goes on from the last version it published.",
                       {{"After the clients are back", "fl retry digits"}});
}

}  // namespace fl::cli
