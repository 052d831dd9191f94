#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "transport/responder.h"

namespace fl::transport::internal {

/// Where the answer to one request is left for its connection. Outlives the connection where a
/// Responder does; then it is detached and answers go nowhere.
class PendingAnswer final : public AnswerSlot {
 public:
  /// `wake` tells the connection that an answer is there; called with the lock held, so that none
  /// runs after Detach.
  explicit PendingAnswer(std::function<void()> wake) : wake_(std::move(wake)) {}

  void Answer(Response response) override {
    std::function<void()> dropped;  // destroyed after the lock: it may own anything
    const std::lock_guard lock(mutex_);
    if (gone_ || answered_) return;
    answered_ = true;
    answer_ = std::move(response);
    dropped.swap(on_disconnect_);
    if (wake_) wake_();
  }

  bool disconnected() const override {
    const std::lock_guard lock(mutex_);
    return gone_;
  }

  void OnDisconnect(std::function<void()> callback) override {
    {
      const std::lock_guard lock(mutex_);
      if (answered_) return;
      if (!gone_) {
        std::swap(on_disconnect_, callback);
        return;
      }
    }
    callback();
  }

  std::optional<Response> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(answer_, std::nullopt);
  }

  /// The connection waits no longer; where there was no answer, gives back what is to be told.
  std::function<void()> Detach() {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
    if (!answered_) gone_ = true;
    return std::exchange(on_disconnect_, nullptr);
  }

 private:
  mutable std::mutex mutex_;
  std::function<void()> wake_;
  std::optional<Response> answer_;
  bool answered_ = false;
  bool gone_ = false;
  std::function<void()> on_disconnect_;
};

}  // namespace fl::transport::internal
