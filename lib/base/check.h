#pragma once

/// FL_CHECK(condition): a broken invariant of our own ends the process with file and line, in every
/// build. Never for input: bad input gets a Status.

#include <string_view>

namespace fl::base::internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view detail);
}  // namespace fl::base::internal

#define FL_CHECK(condition) FL_CHECK_MSG(condition, "")
#define FL_CHECK_MSG(condition, detail) \
  ((condition) ? static_cast<void>(0)   \
               : ::fl::base::internal::CheckFailed(__FILE__, __LINE__, #condition, detail))
