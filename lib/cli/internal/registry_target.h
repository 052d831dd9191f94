#pragma once

/// A registry as a target: models and their versions for reading and writing, and of jobs what they
/// left behind.

#include <memory>
#include <string>

#include "base/status.h"
#include "cli/context.h"
#include "cli/target.h"

namespace fl::cli::internal {

base::Result<std::unique_ptr<JobsClient>> OpenRegistryJobs(const Context& context,
                                                           const std::string& uri);
base::Result<std::unique_ptr<ModelsClient>> OpenRegistryModels(const Context& context,
                                                               const std::string& uri);

}  // namespace fl::cli::internal
