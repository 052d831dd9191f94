#pragma once

/// What of an error may leave the agent's machine.

#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace fl::agent {

/// The message and the hint of `why` as one line for the aggregator, with no path of this machine
/// in it: of each absolute path, and of those of `local` (files and folders of this client, also
/// relative ones), only the name of the file is left. Names of tensors and URLs stay as they are.
std::string PublicReason(const base::Status& why, const std::vector<base::Path>& local);

}  // namespace fl::agent
