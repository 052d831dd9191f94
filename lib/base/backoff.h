#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "base/random.h"

namespace fl::base {

/// Exponential backoff with full jitter in the upper half: the n-th delay is uniform in
/// [d/2, d) with d = min(cap, initial * 2^n). One thread.
class Backoff {
 public:
  Backoff(Duration initial, Duration cap, RandomSource& random)
      : initial_(initial), cap_(cap), random_(random) {}

  /// The delay to wait now; each call doubles the next.
  Duration Next() {
    Duration delay = initial_;
    for (int i = 0; i < failures_ && delay < cap_; ++i) {
      delay = delay > cap_ / 2 ? cap_ : delay * 2;
    }
    delay = std::min(delay, cap_);
    ++failures_;
    return delay / 2 + Duration(static_cast<int64_t>(static_cast<double>((delay / 2).count()) *
                                                     random_.Unit()));
  }
  /// After a success: start small again.
  void Reset() { failures_ = 0; }
  int failures() const { return failures_; }

 private:
  Duration initial_;
  Duration cap_;
  RandomSource& random_;
  int failures_ = 0;
};

}  // namespace fl::base
