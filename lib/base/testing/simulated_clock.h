#pragma once

#include <atomic>

#include "base/clock.h"

namespace fl::base {

/// A clock that stands still until the test moves it. Thread-safe.
class SimulatedClock final : public Clock {
 public:
  explicit SimulatedClock(Time start = Time(std::chrono::seconds(1'800'000'000))) : start_(start) {}
  Time Now() const override { return start_ + elapsed_.load(); }
  Instant Monotonic() const override { return Instant(elapsed_.load()); }
  void Advance(Duration by) { elapsed_.store(elapsed_.load() + by); }

 private:
  const Time start_;
  std::atomic<Duration> elapsed_{Duration(0)};
};

}  // namespace fl::base
