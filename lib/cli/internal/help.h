#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/style.h"

namespace fl::cli::internal {

/// "fl validate -f FILE... [flags]"; `path` is the program and the names of the command.
std::string UsageLine(const std::string& path, const Command& command);
/// What `fl COMMAND --help` prints.
std::string CommandHelp(const std::string& path, const Command& command,
                        const std::vector<Option>& global_flags, const Style& style);
/// What `fl --help` prints.
std::string ProgramHelp(const std::string& program, const CommandTable& table,
                        const std::vector<Option>& global_flags, const Style& style);

}  // namespace fl::cli::internal
