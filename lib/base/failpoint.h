#pragma once

/// Named places in the code where a test makes the process die or an operation fail. The
/// environment variable FL_FAILPOINTS lists them when a program starts: `NAME[#N]=ACTION`,
/// separated by ';', where N (default 1) is the occurrence and ACTION is `kill` (SIGKILL to
/// itself), `error` (the place returns kUnavailable), `nospace` (kResourceExhausted) or `wait:PATH`
/// (until PATH exists). A text that is none of that ends the process, since a failure that never
/// happens proves nothing. Without the variable a place costs one load.

#include <atomic>
#include <string_view>

#include "base/status.h"

namespace fl::base {

namespace internal {
extern std::atomic<bool> failpoints_armed;
Status HitFailpoint(std::string_view name);
}  // namespace internal

/// Passes the place `name`: OK unless a test armed it. Thread-safe.
inline Status Failpoint(std::string_view name) {
  return internal::failpoints_armed.load(std::memory_order_relaxed) ? internal::HitFailpoint(name)
                                                                    : OkStatus();
}

/// Arms places as FL_FAILPOINTS would; "" disarms all. For tests within one process.
void ArmFailpoints(std::string_view spec);

}  // namespace fl::base
