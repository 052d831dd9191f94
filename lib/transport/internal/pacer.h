#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "transport/server.h"

namespace fl::transport::internal {

/// How long a peer may take for the next bytes of a body: not longer silent than
/// `progress_timeout`, and all in all not slower than `min_bytes_per_second` after the grace. Only
/// time spent waiting for the peer counts, never that of our own handlers.
class Pacer {
 public:
  explicit Pacer(const ServerLimits& limits) : limits_(limits) {}

  /// Waiting starts now: until when.
  base::Instant Start(base::Instant now) {
    started_ = now;
    const auto earned =
        std::chrono::seconds(bytes_ / std::max<uint64_t>(limits_.min_bytes_per_second, 1));
    const base::Duration left = limits_.progress_grace + earned - waited_;
    return now + std::clamp(left, base::Duration(0), limits_.progress_timeout);
  }
  /// Waiting ended, with `bytes` more.
  void Stop(base::Instant now, uint64_t bytes) {
    waited_ += now - started_;
    bytes_ += bytes;
  }

 private:
  const ServerLimits& limits_;
  base::Instant started_;
  base::Duration waited_{};
  uint64_t bytes_ = 0;
};

}  // namespace fl::transport::internal
