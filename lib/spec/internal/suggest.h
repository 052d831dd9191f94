#pragma once

/// Words of messages: quotes, choices, and "did you mean".

#include <string>
#include <string_view>
#include <vector>

namespace fl::spec::internal {

/// The name of `known` that differs from `text` by case, or by at most two insertions, deletions,
/// changes or swaps (one in short names); empty where there is none.
std::string_view Nearest(std::string_view text, const std::vector<std::string_view>& known);

/// The text in quotes, cut where it is long.
std::string Quote(std::string_view text);

/// `a, b or c`.
std::string OneOf(const std::vector<std::string_view>& names);

/// ` (did you mean "x"?)` or an empty string.
std::string DidYouMean(std::string_view text, const std::vector<std::string_view>& known);

}  // namespace fl::spec::internal
