#pragma once

#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace fl::cli {

/// Reads "60s", "1h30m", "1.5s", "250ms"; a bare number is seconds. Never negative.
/// kInvalidArgument.
base::Result<base::Duration> ParseDuration(std::string_view text);

}  // namespace fl::cli
