#pragma once

#include <map>
#include <mutex>
#include <string>

namespace fl::obs {

/// Named conditions of a program. Ready while none is failing; a condition starts as failing when
/// it is first named so. Thread-safe.
class Health {
 public:
  /// Sets the condition: an empty reason means it holds.
  void Set(const std::string& condition, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (reason.empty()) {
      failing_.erase(condition);
    } else {
      failing_[condition] = reason;
    }
  }
  /// The conditions that do not hold, with their reasons.
  std::map<std::string, std::string> Failing() const {
    const std::lock_guard lock(mutex_);
    return failing_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> failing_;
};

}  // namespace fl::obs
