#pragma once

#include <functional>
#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "cli/context.h"
#include "cli/target.h"

namespace fl::cli {

/// Calls `seen` with the job as it is, and again after each change, until it returns true. An
/// aggregator that is away in between (restarted, say) is waited for, for a minute.
/// kDeadlineExceeded at `deadline`; kCancelled on the context's stop or when nobody reads its
/// output any more; else what the client or `seen` returned.
base::Status WatchJob(Context& context, JobsClient& client, const base::JobName& job,
                      std::optional<base::Instant> deadline,
                      const std::function<base::Result<bool>(const wire::JobView&)>& seen);

/// True where the job is over for good: it succeeded or failed, and no later attempt was asked for.
bool IsOver(const wire::JobView& job);

}  // namespace fl::cli
