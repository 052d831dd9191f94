#pragma once

/// A running aggregator as a target, over its HTTP interface (lib/aggregator/README.md).

#include <memory>
#include <string>

#include "base/status.h"
#include "cli/context.h"
#include "cli/target.h"

namespace fl::cli::internal {

base::Result<std::unique_ptr<JobsClient>> OpenAggregatorJobs(const Context& context,
                                                             const std::string& url);
base::Result<std::unique_ptr<ModelsClient>> OpenAggregatorModels(const Context& context,
                                                                 const std::string& url);
/// GET /v1/status.
base::Result<wire::AggregatorStatus> ReadAggregatorStatus(const Context& context,
                                                          const std::string& url);

}  // namespace fl::cli::internal
