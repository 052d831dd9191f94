#include "cli/commands/commands.h"

namespace fl::cli {
namespace {

base::Status Start(Context& context, const std::string& program,
                   const std::vector<std::string>& arguments) {
  const base::Path path = context.program_directory / program;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return base::NotFound("there is no " + program + " in " + context.program_directory.string(),
                          "install it beside " + context.program);
  }
  std::vector<std::string> argv = {path.string()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return context.execute(argv);
}

}  // namespace

Command AggregatorCommand() {
  return {.name = "aggregator",
          .summary = "Start fl-aggregatord, which serves the rounds of a model",
          .description = "All that follows goes to fl-aggregatord as it stands.",
          .examples = {{"What it takes", "fl aggregator --help"}},
          .run_raw = [](Context& context, const std::vector<std::string>& arguments) {
            return Start(context, "fl-aggregatord", arguments);
          }};
}

Command AgentCommand() {
  return {.name = "agent",
          .summary = "Start fl-agentd, which trains beside the data",
          .description = "All that follows goes to fl-agentd as it stands.",
          .examples = {{"With a configuration", "fl agent --config agent.yaml"}},
          .run_raw = [](Context& context, const std::vector<std::string>& arguments) {
            return Start(context, "fl-agentd", arguments);
          }};
}

}  // namespace fl::cli
