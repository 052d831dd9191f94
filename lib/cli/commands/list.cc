#include <memory>

#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/target.h"

namespace fl::cli {

Command ListCommand() {
  auto output = std::make_shared<std::string>("table");
  return {
      .name = "list",
      .summary = "List jobs",
      .examples = {{"All jobs of an aggregator", "fl list --aggregator https://localhost:8443"},
                   {"Jobs that left something in a registry", "fl list --registry ./fl-registry"},
                   {"Their names", "fl list -o name"}},
      .flags = {OutputFlag(output.get())},
      .uses_target = true,
      .interruptible = true,
      .run = [output](Context& context) -> base::Status {
        FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(*output));
        FL_ASSIGN_OR_RETURN(const std::unique_ptr<JobsClient> client, OpenJobs(context));
        FL_ASSIGN_OR_RETURN(const std::vector<wire::JobView> jobs, client->Jobs());
        return format.Print(context, JobsDocument(jobs, context.clock->Now()));
      }};
}

}  // namespace fl::cli
