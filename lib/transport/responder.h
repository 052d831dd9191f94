#pragma once

#include <functional>
#include <memory>

#include "transport/http.h"

namespace fl::transport {

/// What stands behind a Responder: a connection of the server, or a fake in tests. Thread-safe.
class AnswerSlot {
 public:
  virtual ~AnswerSlot() = default;
  /// Called at most once.
  virtual void Answer(Response response) = 0;
  virtual bool disconnected() const = 0;
  /// Runs `callback` once when the peer goes before the answer; at once where it has gone.
  virtual void OnDisconnect(std::function<void()> callback) = 0;
};

/// Sends the one answer to one request. It may be moved away and used later, from any thread, also
/// after the connection or the server is gone (then the answer is dropped). Dropped unused, it
/// answers 500.
class Responder {
 public:
  Responder() = default;
  explicit Responder(std::shared_ptr<AnswerSlot> slot) : slot_(std::move(slot)) {}
  Responder(Responder&& other) noexcept = default;
  Responder& operator=(Responder&& other) noexcept;
  ~Responder();

  /// Does not block.
  void Send(Response response) &&;
  /// True once it is known that nobody waits for the answer any more.
  bool disconnected() const { return slot_ == nullptr || slot_->disconnected(); }
  /// For long polls: `callback` runs once, on a thread of the server, when the peer goes before the
  /// answer was sent (at once, in this call, where it has already gone). It may Send (to no
  /// effect), must not block, and is dropped when the answer is sent; it may still be running then.
  void OnDisconnect(std::function<void()> callback) { slot_->OnDisconnect(std::move(callback)); }

 private:
  std::shared_ptr<AnswerSlot> slot_;
};

}  // namespace fl::transport
