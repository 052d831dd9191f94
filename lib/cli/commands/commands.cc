#include "cli/commands/commands.h"

namespace fl::cli {

CommandTable AllCommands() {
  return {
      .groups = {
          {.title = "Without a cluster",
           .commands = {RunCommand(), GenerateCommand(), ValidateCommand(), AggregateCommand(),
                        InspectCommand(), KeysCommand(), AggregatorCommand(), AgentCommand()}},
          {.title = "Jobs",
           .commands = {SubmitCommand(), ListCommand(), GetCommand(), StatusCommand(),
                        WaitCommand(), RoundsCommand(), ClientsCommand(), LogsCommand(),
                        DescribeCommand(), PauseCommand(), ResumeCommand(), AbortCommand(),
                        RetryCommand()}},
          {.title = "Models", .commands = {ModelsCommand(), RollbackCommand(), PromoteCommand()}},
          {.title = "Support",
           .commands = {DoctorCommand(), CompletionCommand(), VersionCommand()}},
      }};
}

}  // namespace fl::cli
