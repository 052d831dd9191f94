#pragma once

/// Asking a program to stop. Cancellation is a std::stop_token everywhere; this header turns
/// signals into one.

#include <stop_token>

namespace fl::base {

/// While it lives, SIGINT and SIGTERM request a stop instead of ending the process, and SIGPIPE is
/// ignored. A second SIGINT ends the process at once with status 130. One at a time in a process,
/// made by main() before other threads start (they inherit the blocked signals).
class SignalStop {
 public:
  SignalStop();
  ~SignalStop();
  SignalStop(const SignalStop&) = delete;
  SignalStop& operator=(const SignalStop&) = delete;

  std::stop_token token() const;
  /// The signal that asked for the stop, or 0.
  int signal() const;

 private:
  struct State;
  State* state_;
};

}  // namespace fl::base
