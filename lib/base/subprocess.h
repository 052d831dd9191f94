#pragma once

/// Child processes: the seam for running a user's program or a daemon of ours.

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"

namespace fl::base {

/// What to run. `argv[0]` is looked up on PATH where it has no '/'.
struct Command {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  ///< added to (and overriding) this process's own
  bool inherit_env = true;                 ///< false: `env` is all that the child gets
  std::optional<Path> working_directory;
  std::optional<Path> stdout_file;  ///< appended to; none: inherited
  std::optional<Path> stderr_file;  ///< appended to; none: inherited
  int stderr_fd = -1;               ///< a descriptor of ours that becomes its stderr (not owned)
  int stdout_fd = -1;               ///< the same for stdout
  bool pipe_stdin = false;          ///< the caller writes with WriteLine; else /dev/null
  bool pipe_stdout = false;         ///< the caller reads with ReadLine; else as stdout_file says
  bool die_with_parent =
      true;  ///< the kernel kills it (not its own children) when this process dies
};

/// How a child ended.
struct ExitInfo {
  int code = -1;                 ///< exit status, or -1 where a signal ended it
  int signal = 0;                ///< the signal, or 0
  std::string ToString() const;  ///< "exit status 3", "killed by signal 9 (SIGKILL)"
};

/// A child in a process group of its own; killed, group and all, when dropped while it runs. What
/// is left of the group when the child ends is killed too, so that nothing outlives it. It starts
/// with default signal handling, no signal blocked, and no descriptor but 0, 1 and 2. One thread at
/// a time, but Kill may be called from any.
class Subprocess {
 public:
  /// kNotFound, kPermissionDenied, kInvalidArgument (not a program) where it cannot be started,
  /// naming it.
  static Result<Subprocess> Start(const Command& command);
  Subprocess(Subprocess&&) noexcept;
  Subprocess& operator=(Subprocess&&) noexcept;
  ~Subprocess();

  int pid() const;
  /// Waits for the end. kDeadlineExceeded at `deadline` and kCancelled on `stop`: the child still
  /// runs then.
  Result<ExitInfo> Wait(std::optional<Instant> deadline = {}, std::stop_token stop = {});
  /// How it ended, where it has.
  std::optional<ExitInfo> Poll();
  /// SIGTERM to the group, SIGKILL after `grace`, and waits.
  ExitInfo Terminate(Duration grace);
  /// Sends `signal` to the group.
  void Kill(int signal);

  /// Writes `line` and its end. kUnavailable where the child closed its end.
  Status WriteLine(std::string_view line);
  /// One line without its end; at most `limit` bytes (else kOutOfRange). kUnavailable at end of
  /// file.
  Result<std::string> ReadLine(std::optional<Instant> deadline = {}, std::stop_token stop = {},
                               size_t limit = 1 << 20);

 private:
  struct State;
  explicit Subprocess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The folder of the running executable, where its sibling programs are.
Path ExecutableDirectory();

}  // namespace fl::base
