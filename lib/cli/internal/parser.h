#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"

namespace fl::cli::internal {

/// Reads the flags and arguments of one command into their destinations. `flags` are the command's
/// own and the global ones. kInvalidArgument, with the nearest flag as the hint for one that is not
/// known.
base::Status ParseArguments(const std::string& usage, const std::vector<Option>& flags,
                            const std::vector<Option>& positional,
                            const std::vector<std::string>& arguments);

}  // namespace fl::cli::internal
