#pragma once

/// Counts in messages.

#include <cstdint>
#include <string>
#include <string_view>

namespace fl::base {

/// "1 version", "2 versions"; "1 entry", "2 entries" with the `plural` given.
std::string Count(int64_t count, std::string_view singular, std::string_view plural = "");

/// "the only round", "all 3 rounds".
std::string AllOf(int64_t count, std::string_view singular, std::string_view plural = "");

}  // namespace fl::base
