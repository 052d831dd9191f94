#pragma once

/// How objects are named on the command line: `job digits`, `jobs`, `job/digits`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fl::cli {

enum class ResourceKind { kJob, kModel, kClient };

/// "job", "model", "client".
std::string_view Name(ResourceKind kind);
/// From a word: singular, plural, the kind's own name or its short name (flj, flm, flc), in any
/// case.
std::optional<ResourceKind> ParseResourceKind(std::string_view word);

struct ResourceList {
  ResourceKind kind = ResourceKind::kJob;
  std::vector<std::string> names;  ///< none: all
};

/// "KIND [NAME…]" or "KIND/NAME…" (all of one kind). kInvalidArgument.
base::Result<ResourceList> ParseResources(const std::vector<std::string>& words);

}  // namespace fl::cli
