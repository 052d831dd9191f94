#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fl::cli::internal {

/// The candidate that `typed` was most likely meant to be: fewest edits (insertions, deletions,
/// substitutions, swapped neighbours), not more than a third of its length; "" where none is near.
std::string Suggest(std::string_view typed, const std::vector<std::string>& candidates);

}  // namespace fl::cli::internal
