#pragma once

/// Runs commands in process, as a user would, with streams of its own.

#include <sstream>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/program.h"

namespace fl::cli {

struct CommandResult {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// Each Run is a process of its own to the command; what is set here holds for all of them.
struct CommandRunner {
  std::map<std::string, std::string> environment;
  base::Clock* clock = &base::Clock::System();
  bool terminal = false;
  std::string in;
  base::Path program_directory = "/nowhere";
  std::stop_token stop;
  std::vector<std::string> executed;  ///< argv of the program that was to replace this one

  CommandResult Run(const std::vector<std::string>& arguments) {
    std::istringstream input(in);
    std::ostringstream out;
    std::ostringstream err;
    Context context{.in = input, .out = out, .err = err};
    context.environment = environment;
    context.clock = clock;
    context.out_is_terminal = terminal;
    context.err_is_terminal = terminal;
    context.program_directory = program_directory;
    context.stop = stop;
    context.execute = [this](const std::vector<std::string>& argv) {
      executed = argv;
      return base::OkStatus();
    };
    CommandResult result;
    result.exit_code = cli::Run(context, AllCommands(), arguments);
    result.out = out.str();
    result.err = err.str();
    return result;
  }
};

}  // namespace fl::cli
