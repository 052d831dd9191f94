#include <memory>

#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/target.h"
#include "wire/status.h"

namespace fl::cli {
namespace {

struct Options {
  std::string job;
  std::string output = "table";
};

std::string Took(const wire::RoundStatus& round) {
  const base::Result<base::Time> start = base::ParseTime(round.start_time);
  const base::Result<base::Time> end = base::ParseTime(round.end_time);
  if (!start.ok() || !end.ok() || *end < *start) return "";
  return base::FormatDuration(*end - *start);
}

base::Status Rounds(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  FL_ASSIGN_OR_RETURN(const base::JobName job, ParseJobName(options.job));
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<JobsClient> client, OpenJobs(context));
  FL_ASSIGN_OR_RETURN(const std::vector<wire::RoundStatus> rounds, client->Rounds(job));
  Document document{.empty = "no rounds yet"};
  document.table.columns = {{.title = "ROUND"},    {.title = "ATTEMPT", .wide = true},
                            {.title = "PHASE"},    {.title = "SELECTED"},
                            {.title = "ACCEPTED"}, {.title = "REJECTED"},
                            {.title = "VERSION"},  {.title = "METRICS"},
                            {.title = "TOOK"},     {.title = "MESSAGE", .wide = true}};
  for (const wire::RoundStatus& round : rounds) {
    document.table.rows.push_back({std::to_string(round.number), std::to_string(round.attempt),
                                   round.phase, std::to_string(round.selected),
                                   std::to_string(round.accepted), std::to_string(round.rejected),
                                   round.version ? std::to_string(*round.version) : "",
                                   FormatMetrics(round.metrics), Took(round), round.message});
    document.names.push_back("round/" + std::to_string(round.number));
  }
  const spec::Value data = ValueFromJson(wire::RoundsToJson(rounds, 0));
  const spec::Value* items = data.Find("rounds");
  document.data = ListOf(items == nullptr ? spec::Value::List() : *items->As<spec::Value::List>());
  return format.Print(context, document);
}

}  // namespace

Command RoundsCommand() {
  auto options = std::make_shared<Options>();
  return {.name = "rounds",
          .summary = "List the rounds of a job",
          .examples = {{"With who took part and what came out", "fl rounds digits"},
                       {"Clients and reasons too", "fl rounds digits -o json"}},
          .flags = {OutputFlag(&options->output)},
          .arguments = {{.names = "JOB",
                         .help = "Name of the job",
                         .to = &options->job,
                         .required = true,
                         .completes = Completes::kJob}},
          .uses_target = true,
          .interruptible = true,
          .run = [options](Context& context) { return Rounds(*options, context); }};
}

}  // namespace fl::cli
