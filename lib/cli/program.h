#pragma once

/// From arguments to an exit status.

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"
#include "cli/context.h"

namespace fl::cli {

/// Runs the command that `arguments` (without the program's name) ask for and returns the exit
/// status; errors are printed to `context.err`. `before_run`, where given, is called once, when all
/// is parsed and the command is about to run.
int Run(Context& context, const CommandTable& table, const std::vector<std::string>& arguments,
        const std::function<void(const Command&)>& before_run = nullptr);

/// `fl: error: MESSAGE` and `hint: HINT`, for a status that is not OK.
void PrintError(Context& context, const base::Status& status);

/// The whole program `fl`: streams, signals and environment of this process.
int Main(int argc, char** argv);

}  // namespace fl::cli
