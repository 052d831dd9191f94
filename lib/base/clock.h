#pragma once

/// The seam for time. Code that waits or stamps takes a `Clock&`, so that in tests time moves only
/// when the test says so (testing/simulated_clock.h).

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace fl::base {

using Duration = std::chrono::nanoseconds;
/// Wall-clock time, for records that people read.
using Time = std::chrono::sys_time<Duration>;
/// Time that never goes back, for deadlines.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time Now() const = 0;
  virtual Instant Monotonic() const = 0;

  /// The machine's clock, alive as long as the process.
  static Clock& System();
};

/// RFC 3339 in UTC with milliseconds: "2026-11-30T20:54:58.123Z".
std::string FormatTime(Time time);
/// Reads RFC 3339 in UTC ("Z" or "+00:00"), fraction optional; digits past the ninth are dropped.
/// Years 1678 to 2261, which nanoseconds in 64 bits can hold. kInvalidArgument.
Result<Time> ParseTime(std::string_view text);

/// "1.2s", "350ms", "4m10s", "3h5m": the two largest units that matter, rounded to the nearest.
std::string FormatDuration(Duration duration);

}  // namespace fl::base
