#include <algorithm>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/target.h"

namespace fl::cli {

Command ModelsListCommand() {
  auto output = std::make_shared<std::string>("table");
  return {.name = "list",
          .summary = "List models and which version of each is current",
          .examples = {{"All models of a registry", "fl models list --registry ./fl-registry"},
                       {"The versions of one", "fl models history digits"}},
          .flags = {OutputFlag(output.get())},
          .uses_target = true,
          .interruptible = true,
          .run = [output](Context& context) -> base::Status {
            FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(*output));
            FL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelsClient> client, OpenModels(context));
            FL_ASSIGN_OR_RETURN(const std::vector<ModelSummary> models, client->Models());
            return format.Print(context, ModelsDocument(models, context.clock->Now()));
          }};
}

}  // namespace fl::cli
