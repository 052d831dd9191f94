#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace fl::base {

/// A clock that stands still until the test moves it. Thread-safe.
class SimulatedClock final : public Clock {
 public:
  explicit SimulatedClock(Time start = Time(std::chrono::seconds(1'800'000'000))) : start_(start) {}
  Time Now() const override { return start_ + Duration(elapsed_.load()); }
  Instant Monotonic() const override { return Instant(Duration(elapsed_.load())); }
  void Advance(Duration by) { elapsed_.fetch_add(by.count()); }

 private:
  const Time start_;
  std::atomic<int64_t> elapsed_{0};
};

}  // namespace fl::base
