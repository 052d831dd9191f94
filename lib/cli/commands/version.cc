#include "base/version.h"

#include <memory>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "spec/metadata.h"

namespace fl::cli {

Command VersionCommand() {
  auto output = std::make_shared<std::string>("table");
  return {.name = "version",
          .summary = "Print the version",
          .examples = {{"For a script", "fl version -o jsonpath='{.version}'"}},
          .flags = {OutputFlag(output.get())},
          .run = [output](Context& context) -> base::Status {
            FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(*output));
            const std::string version(base::kVersion);
            return format.Print(
                context,
                {.data = spec::Value::Map{{"apiVersion", spec::kApiVersion}, {"version", version}},
                 .names = {version},
                 .text = "fl " + version + "\n"});
          }};
}

}  // namespace fl::cli
