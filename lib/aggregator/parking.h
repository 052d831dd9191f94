#pragma once

/// Long polls that wait for something to happen.

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "transport/responder.h"

namespace fl::aggregator {

/// Requests that are answered when a check gives an answer, at latest when their time is over. One
/// thread at a time (the service's lock).
class Parking {
 public:
  /// What to answer now, or nothing yet. With `expired` true there must be an answer. Called under
  /// the service's lock.
  using Check = std::function<std::optional<transport::Response>(bool expired)>;

  /// Answers at once where `check` does, else keeps the request. `on_gone` is called from any
  /// thread, without a lock, when the peer hangs up; the request is dropped at the next Sweep.
  void Park(transport::Responder responder, base::Instant deadline, Check check,
            std::function<void()> on_left, const std::function<void()>& on_gone);
  /// Answers all that have an answer or whose time is over, and drops those whose peer is gone.
  void Sweep(base::Instant now);
  /// When the next request expires.
  std::optional<base::Instant> NextDeadline() const;
  size_t size() const { return waiting_.size(); }

 private:
  struct Entry {
    transport::Responder responder;
    base::Instant deadline;
    Check check;
    std::function<void()> on_left;  // answered or gone
    std::shared_ptr<std::atomic<bool>> gone;
  };
  std::list<Entry> waiting_;
};

}  // namespace fl::aggregator
