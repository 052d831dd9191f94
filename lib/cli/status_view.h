#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/style.h"
#include "cli/target.h"

namespace fl::cli {

struct StatusViewOptions {
  bool all_rounds = false;  ///< else the last five
};

/// A job, its rounds and the clients of the newest round as a tree, one line each.
std::string StatusTree(const wire::JobView& job, const std::vector<wire::RoundStatus>& rounds,
                       const Style& style, base::Time now, const StatusViewOptions& options = {});

/// The job in one line, for logs: "digits Running round 3/20 Collecting 4/10 accuracy=0.91".
std::string StatusLine(const wire::JobView& job);

}  // namespace fl::cli
