#include <memory>

#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/target.h"

namespace fl::cli {

Command ClientsCommand() {
  auto output = std::make_shared<std::string>("table");
  return {.name = "clients",
          .summary = "List clients and what they are doing",
          .examples = {{"Who is connected", "fl clients"},
                       {"With labels, software and last error", "fl clients -o wide"}},
          .flags = {OutputFlag(output.get())},
          .uses_target = true,
          .interruptible = true,
          .run = [output](Context& context) -> base::Status {
            FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(*output));
            FL_ASSIGN_OR_RETURN(const std::unique_ptr<JobsClient> client, OpenJobs(context));
            FL_ASSIGN_OR_RETURN(const std::vector<ClientView> clients, client->Clients());
            return format.Print(context, ClientsDocument(clients, context.clock->Now()));
          }};
}

}  // namespace fl::cli
