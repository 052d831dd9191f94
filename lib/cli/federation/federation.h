#pragma once

/// `fl run`: a whole federation on this machine, the aggregator and each agent a process.

#include "base/status.h"
#include "cli/context.h"
#include "cli/federation/plan.h"

namespace fl::cli {

/// Starts the daemons, submits the plan's objects, shows progress until the jobs are over, and
/// stops the daemons. Where an earlier run was stopped it goes on; jobs that have succeeded before
/// are left alone. kFailedPrecondition where a job fails or ran before with another configuration;
/// kCancelled on the context's stop.
base::Status RunFederation(Context& context, const Plan& plan, const RunOptions& options);

}  // namespace fl::cli
