#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "transport/responder.h"

namespace fl::transport {

/// Makes Responders whose answers a test reads, without a server. Thread-safe.
class RecordingResponder {
 public:
  RecordingResponder();

  /// The Responder to hand to the code under test. Once.
  Responder Make();
  /// The answer, where it came.
  std::optional<Response> answer() const;
  /// Waits up to `timeout` of real time for the answer.
  std::optional<Response> Wait(base::Duration timeout = std::chrono::seconds(10)) const;
  /// The peer goes.
  void Disconnect();

 private:
  class Slot;
  std::shared_ptr<Slot> slot_;
};

}  // namespace fl::transport
