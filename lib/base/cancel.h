#pragma once

/// Asking a program to stop. Cancellation is a std::stop_token everywhere; this header turns
/// signals into one.

#include <stop_token>

namespace fl::base {

/// While it lives, SIGINT and SIGTERM request a stop instead of ending the process. SIGPIPE and
/// SIGXFSZ are ignored from then on, so that a closed connection and a file too large are errors of
/// the call. A second SIGINT ends the process at once with status 130. Callbacks of the token run
/// on a thread of its own. One at a time in a process, made by main() before other threads start
/// (they inherit the blocked signals, and so do child processes that do not unblock them).
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
