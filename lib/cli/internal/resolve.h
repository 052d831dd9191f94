#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"

namespace fl::cli::internal {

/// The command that the arguments name, and what is left for it.
struct Resolved {
  const Command* command = nullptr;  ///< null: none was named
  std::string path;                  ///< "fl models list"
  std::vector<std::string> leading;  ///< flags that stood before the command
  std::vector<std::string> rest;     ///< all after it
};

/// Finds the command, whatever flags stand before it. kInvalidArgument for one that there is not,
/// with the nearest as the hint.
base::Result<Resolved> Resolve(const std::string& program, const CommandTable& table,
                               const std::vector<Option>& global_flags,
                               const std::vector<std::string>& arguments);

}  // namespace fl::cli::internal
