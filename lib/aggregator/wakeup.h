#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace fl::aggregator {

/// Wakes the engine. Has a lock of its own, so that Notify may be called with or without any other.
class Wakeup {
 public:
  void Notify() {
    {
      const std::lock_guard lock(mutex_);
      notified_ = true;
    }
    changed_.notify_all();
  }
  /// True once after one or more Notify.
  bool Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(notified_, false);
  }
  /// Until Notify or `deadline`.
  void Wait(std::optional<base::Instant> deadline) {
    std::unique_lock lock(mutex_);
    const auto reason = [this] { return notified_; };
    if (deadline) {
      changed_.wait_until(lock, *deadline, reason);
    } else {
      changed_.wait(lock, reason);
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool notified_ = false;
};

}  // namespace fl::aggregator
