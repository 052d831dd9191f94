#pragma once

/// Files that the user names.

#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/context.h"
#include "spec/parse.h"

namespace fl::cli {

/// An error about a file that the user named: what is missing, unreadable or a folder is the user's
/// input (kInvalidArgument); a full disk and the like stays what it is.
base::Status AboutInput(const base::Status& status);

/// The whole file, `-` for standard input. kInvalidArgument.
base::Result<std::string> ReadInput(Context& context, const std::string& file,
                                    uint64_t limit = spec::kMaxTextBytes);

/// The objects of all `files` as one set. A folder stands for its *.yaml, *.yml and *.json, by
/// name. kInvalidArgument where a file cannot be read or there is no file; what is wrong inside is
/// in the result.
base::Result<spec::ParseResult> ReadObjects(Context& context, const std::vector<std::string>& files,
                                            spec::AgentKeys keys = spec::AgentKeys::kGiven);

/// The flag -f of commands that read objects.
Option FilenameFlag(std::vector<std::string>* to);

}  // namespace fl::cli
