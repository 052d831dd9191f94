#include "transport/testing/recording_responder.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace fl::transport {

class RecordingResponder::Slot final : public AnswerSlot {
 public:
  void Answer(Response response) override {
    std::function<void()> dropped;
    const std::lock_guard lock(mutex_);
    answer_ = std::move(response);
    dropped.swap(on_disconnect_);
    changed_.notify_all();
  }
  bool disconnected() const override {
    const std::lock_guard lock(mutex_);
    return disconnected_;
  }
  void OnDisconnect(std::function<void()> callback) override {
    {
      const std::lock_guard lock(mutex_);
      if (!disconnected_) {
        on_disconnect_ = std::move(callback);
        return;
      }
    }
    callback();
  }
  void Disconnect() {
    std::function<void()> callback;
    {
      const std::lock_guard lock(mutex_);
      disconnected_ = true;
      callback.swap(on_disconnect_);
    }
    if (callback) callback();
  }
  std::optional<Response> Wait(base::Duration timeout) const {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return answer_.has_value(); });
    return answer_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Response> answer_;
  bool disconnected_ = false;
  std::function<void()> on_disconnect_;
};

RecordingResponder::RecordingResponder() : slot_(std::make_shared<Slot>()) {}
Responder RecordingResponder::Make() { return Responder(slot_); }
std::optional<Response> RecordingResponder::answer() const { return slot_->Wait({}); }
std::optional<Response> RecordingResponder::Wait(base::Duration timeout) const {
  return slot_->Wait(timeout);
}
void RecordingResponder::Disconnect() { slot_->Disconnect(); }

}  // namespace fl::transport
