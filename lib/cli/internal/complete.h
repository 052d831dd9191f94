#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"
#include "cli/context.h"

namespace fl::cli::internal {

/// What may stand at the end of a line: the candidates for the last of `words`, which is what was
/// typed of it so far, each as "WORD\tDESCRIPTION", then ":N". N is a sum as in cobra's scripts
/// (kubectl reads it too): 2 no blank after it, 4 no file names, 16 folders only. Names of jobs,
/// models and versions are asked for, briefly; where that fails there are none.
base::Status Complete(Context& context, const CommandTable& table,
                      const std::vector<Option>& global_flags,
                      const std::vector<std::string>& words);

}  // namespace fl::cli::internal
