#pragma once

/// Every command; each is a file of its name in this folder. The table in commands.cc is the only
/// list of them.

#include "cli/command.h"

namespace fl::cli {

CommandTable AllCommands();

// Without a cluster.
Command RunCommand();
Command GenerateCommand();
Command ValidateCommand();
Command AggregateCommand();
Command InspectCommand();
Command KeysCommand();
Command AggregatorCommand();
Command AgentCommand();

// Jobs.
Command SubmitCommand();
Command ListCommand();
Command GetCommand();
Command StatusCommand();
Command WaitCommand();
Command RoundsCommand();
Command ClientsCommand();
Command LogsCommand();
Command DescribeCommand();
Command PauseCommand();
Command ResumeCommand();
Command AbortCommand();
Command RetryCommand();

// Models.
Command ModelsCommand();  ///< a group of these:
Command ModelsListCommand();
Command ModelsShowCommand();
Command ModelsHistoryCommand();
Command ModelsDiffCommand();
Command ModelsVerifyCommand();
Command ModelsExportCommand();
Command ModelsImportCommand();
Command ModelsGcCommand();
Command RollbackCommand();
Command PromoteCommand();

// Support.
Command DoctorCommand();
Command CompletionCommand();
Command VersionCommand();

}  // namespace fl::cli
