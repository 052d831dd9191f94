#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "base/check.h"

// Environment of this process, as POSIX declares it.
extern char** environ;

namespace fl::base {
namespace {

/// Where the start of a child failed, told to the parent through a pipe.
enum class Stage : int { kDirectory, kRedirect, kExec };
struct StartFailure {
  Stage stage;
  int error_number;
};

/// Everything that the child needs between fork and exec, where it may not allocate.
struct Prepared {
  std::string program;
  std::vector<char*> argv;
  std::vector<std::string> env_strings;
  std::vector<char*> env;
  const char* working_directory = nullptr;
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  int failure_fd = -1;
  bool die_with_parent = true;
  pid_t parent = 0;
};

void MarkCloseOnExecFrom(int first) {
#ifdef SYS_close_range
  constexpr unsigned kCloseOnExec = 1U << 2;  // CLOSE_RANGE_CLOEXEC
  if (::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, kCloseOnExec) == 0) return;
#endif
  struct rlimit limit;
  const int last = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536
                       ? static_cast<int>(limit.rlim_cur)
                       : 65536;
  for (int fd = first; fd < last; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/// Makes `fd` the child's descriptor `target`; -1 leaves what was inherited.
bool Redirect(int fd, int target) { return fd < 0 || ::dup2(fd, target) == target; }

/// Runs in the child, after fork in a process with threads: async-signal-safe calls only.
[[noreturn]] void RunChild(const Prepared& prepared) {
  const auto fail = [&prepared](Stage stage) {
    const StartFailure failure{stage, errno};
    [[maybe_unused]] const ssize_t count = ::write(prepared.failure_fd, &failure, sizeof(failure));
    ::_exit(127);
  };
  ::setpgid(0, 0);
  if (prepared.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != prepared.parent) ::_exit(127);  // it died before prctl
  }
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
  // The descriptors are above 2 (Above2), so none is overwritten before it is used.
  if (!Redirect(prepared.stdin_fd, 0) || !Redirect(prepared.stdout_fd, 1) ||
      !Redirect(prepared.stderr_fd, 2)) {
    fail(Stage::kRedirect);
  }
  MarkCloseOnExecFrom(3);
  if (prepared.working_directory != nullptr && ::chdir(prepared.working_directory) != 0) {
    fail(Stage::kDirectory);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(prepared.program.c_str(), prepared.argv.data(), prepared.env.data());
  fail(Stage::kExec);
  ::_exit(127);
}

/// Forks on a thread that lives as long as the process: the kernel sends PR_SET_PDEATHSIG when the
/// thread that forked ends, and callers' threads come and go.
class Forker {
 public:
  static Forker& Get() {
    static Forker& forker = *new Forker;  // never destroyed: its thread never ends
    return forker;
  }

  /// The child's pid, or -1 with errno in `error_number`.
  pid_t Fork(const Prepared& prepared, int& error_number) {
    std::promise<std::pair<pid_t, int>> promise;
    auto future = promise.get_future();
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back({&prepared, &promise});
    }
    changed_.notify_one();
    const auto [pid, error] = future.get();
    error_number = error;
    return pid;
  }

 private:
  struct Request {
    const Prepared* prepared;
    std::promise<std::pair<pid_t, int>>* promise;
  };

  Forker() {
    std::thread([this] { Serve(); }).detach();
  }

  [[noreturn]] void Serve() {
    // No handler of ours may run in the child before exec.
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !requests_.empty(); });
      const Request request = requests_.front();
      requests_.pop_front();
      lock.unlock();
      const pid_t pid = ::fork();
      if (pid == 0) RunChild(*request.prepared);
      request.promise->set_value({pid, pid < 0 ? errno : 0});
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
};

/// The same descriptor, at a number above the standard ones.
Result<UniqueFd> Above2(UniqueFd fd) {
  if (fd.get() > 2) return fd;
  UniqueFd moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!moved.valid()) return FromErrno(errno, "duplicate a descriptor");
  return moved;
}

Result<UniqueFd> OpenAbove2(const Path& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, 0644));
  if (!fd.valid()) return FromErrno(errno, "open " + path.string());
  return Above2(std::move(fd));
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> fds;
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return FromErrno(errno, "make a pipe");
  UniqueFd read(fds[0]);
  UniqueFd write(fds[1]);
  FL_ASSIGN_OR_RETURN(read, Above2(std::move(read)));
  FL_ASSIGN_OR_RETURN(write, Above2(std::move(write)));
  return Pipe{std::move(read), std::move(write)};
}

/// Where execve finds `name`: as it is where it has a '/', else the first executable file of that
/// name in the folders of `path`.
Result<std::string> FindProgram(const std::string& name, const std::string& path) {
  if (name.empty()) return InvalidArgument("the program's name is empty");
  if (name.find('/') != std::string::npos) return name;
  bool found_but_not_executable = false;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find(':', start), path.size());
    const std::string folder = path.substr(start, end - start);
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    std::error_code ignored;
    if (std::filesystem::is_regular_file(candidate, ignored)) {
      if (::access(candidate.c_str(), X_OK) == 0) return candidate;
      found_but_not_executable = true;
    }
    start = end + 1;
  }
  if (found_but_not_executable) {
    return PermissionDenied("start " + name + ": the file on PATH is not executable",
                            "chmod +x it");
  }
  return NotFound("start " + name + ": no such program on PATH",
                  "install it, or give its full path");
}

Status DescribeFailure(const Command& command, const StartFailure& failure) {
  const std::string& name = command.argv[0];
  switch (failure.stage) {
    case Stage::kDirectory:
      return FromErrno(failure.error_number,
                       "start " + name + " in folder " + command.working_directory->string());
    case Stage::kRedirect:
      return FromErrno(failure.error_number, "start " + name + ": redirect its output");
    case Stage::kExec:
      break;
  }
  if (failure.error_number == ENOEXEC) {
    return InvalidArgument("start " + name + ": not a program",
                           "a script needs a first line such as #!/bin/sh");
  }
  if (failure.error_number == E2BIG) {
    return InvalidArgument("start " + name + ": arguments and environment are too long");
  }
  std::error_code ignored;
  if (failure.error_number == ENOENT && std::filesystem::exists(name, ignored)) {
    return NotFound("start " + name + ": its interpreter does not exist",
                    "check the first line of the script");
  }
  return FromErrno(failure.error_number, "start " + name);
}

/// Blocks SIGPIPE on this thread, and takes it away again where a write of ours raised it.
class NoSigpipe {
 public:
  NoSigpipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &previous_);
  }
  ~NoSigpipe() {
    if (!was_pending_) {
      const struct timespec now = {0, 0};
      while (::sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t previous_;
  bool was_pending_ = false;
};

/// Waits for a descriptor, a stop request or a deadline, whichever comes first.
class Waiter {
 public:
  explicit Waiter(const std::stop_token& stop)
      : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), callback_(stop, [this] {
          const uint64_t one = 1;
          [[maybe_unused]] const ssize_t count = ::write(wake_.get(), &one, sizeof(one));
        }) {
    FL_CHECK_MSG(wake_.valid(), "no descriptor left for an eventfd");
  }

  /// True where `fd` is ready; false where `slice` passed first (none: no limit) or on a signal.
  /// kCancelled, kDeadlineExceeded.
  Result<bool> Wait(int fd, std::optional<Instant> deadline, const std::stop_token& stop,
                    std::optional<Duration> slice = {}) {
    if (stop.stop_requested()) return Cancelled("stopped");
    std::optional<Duration> timeout = slice;
    bool deadline_is_first = false;
    if (deadline) {
      const Duration left = std::max(*deadline - Clock::System().Monotonic(), Duration(0));
      if (!timeout || left <= *timeout) {
        timeout = left;
        deadline_is_first = true;
      }
    }
    struct timespec time = {};
    if (timeout) {
      time.tv_sec = static_cast<time_t>(timeout->count() / 1'000'000'000);
      time.tv_nsec = static_cast<long>(timeout->count() % 1'000'000'000);
    }
    std::array<struct pollfd, 2> fds = {{{wake_.get(), POLLIN, 0}, {fd, POLLIN, 0}}};
    const int ready = ::ppoll(fds.data(), fd >= 0 ? 2 : 1, timeout ? &time : nullptr, nullptr);
    if (stop.stop_requested()) return Cancelled("stopped");
    if (ready < 0) {
      FL_CHECK(errno == EINTR);
      return false;
    }
    if (fds[1].revents != 0) return true;
    if (ready == 0 && deadline_is_first) return DeadlineExceeded("time ran out");
    return false;
  }

 private:
  UniqueFd wake_;
  std::stop_callback<std::function<void()>> callback_;
};

}  // namespace

std::string ExitInfo::ToString() const {
  if (signal == 0) return "exit status " + std::to_string(code);
  const char* name = ::sigabbrev_np(signal);
  return "killed by signal " + std::to_string(signal) +
         (name == nullptr ? "" : " (SIG" + std::string(name) + ")");
}

struct Subprocess::State {
  pid_t pid = -1;
  UniqueFd pidfd;  // invalid where the kernel has none; then we poll
  UniqueFd stdin_pipe;
  UniqueFd stdout_pipe;
  std::string buffered;  // read from stdout_pipe, not yet given out
  size_t searched = 0;   // of it, already known to have no end of line
  std::mutex mutex;      // guards ended, and the pid against being reused while we signal it
  std::optional<ExitInfo> ended;

  void Kill(int signal) {
    const std::lock_guard lock(mutex);
    if (!ended) ::kill(-pid, signal);
  }

  std::optional<ExitInfo> Poll() {
    const std::lock_guard lock(mutex);
    if (ended) return ended;
    siginfo_t info = {};
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
      FL_CHECK_MSG(errno == EINTR, "somebody else reaped a child of ours");
      return std::nullopt;
    }
    if (info.si_pid == 0) return std::nullopt;
    // While the zombie keeps the number of the group ours, end what is left of the group.
    ::kill(-pid, SIGKILL);
    int wait_status = 0;
    while (::waitpid(pid, &wait_status, 0) < 0) FL_CHECK(errno == EINTR);
    ExitInfo exit;
    if (WIFSIGNALED(wait_status)) {
      exit.signal = WTERMSIG(wait_status);
    } else {
      exit.code = WEXITSTATUS(wait_status);
    }
    ended = exit;
    return ended;
  }

  ~State() {
    if (pid <= 0) return;
    while (!Poll()) {
      Kill(SIGKILL);
      siginfo_t info = {};
      ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
    }
  }
};

Result<Subprocess> Subprocess::Start(const Command& command) {
  if (command.argv.empty()) return InvalidArgument("no program to start: argv is empty");
  auto state = std::make_unique<State>();
  Prepared prepared;
  prepared.die_with_parent = command.die_with_parent;
  prepared.parent = ::getpid();

  std::map<std::string, std::string> env;
  if (command.inherit_env) {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      const size_t equals = text.find('=');
      if (equals == std::string_view::npos) continue;
      env.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  for (const auto& [name, value] : command.env) env[name] = value;
  for (const auto& [name, value] : env) prepared.env_strings.push_back(name + "=" + value);
  for (std::string& entry : prepared.env_strings) prepared.env.push_back(entry.data());
  prepared.env.push_back(nullptr);

  const auto path = env.find("PATH");
  FL_ASSIGN_OR_RETURN(
      prepared.program,
      FindProgram(command.argv[0], path != env.end() ? path->second : "/usr/bin:/bin"));
  std::vector<std::string> arguments = command.argv;
  for (std::string& argument : arguments) prepared.argv.push_back(argument.data());
  prepared.argv.push_back(nullptr);
  if (command.working_directory) {
    prepared.working_directory = command.working_directory->c_str();
  }

  UniqueFd stdin_fd;
  UniqueFd stdout_fd;
  UniqueFd stderr_fd;
  if (command.pipe_stdin) {
    FL_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
    stdin_fd = std::move(pipe.read);
    state->stdin_pipe = std::move(pipe.write);
  } else {
    FL_ASSIGN_OR_RETURN(stdin_fd, OpenAbove2("/dev/null", O_RDONLY));
  }
  const auto duplicate = [](int fd) -> Result<UniqueFd> {
    UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!copy.valid()) return FromErrno(errno, "duplicate a descriptor");
    return copy;
  };
  if (command.pipe_stdout) {
    FL_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
    stdout_fd = std::move(pipe.write);
    state->stdout_pipe = std::move(pipe.read);
  } else if (command.stdout_fd >= 0) {
    FL_ASSIGN_OR_RETURN(stdout_fd, duplicate(command.stdout_fd));
  } else if (command.stdout_file) {
    FL_ASSIGN_OR_RETURN(stdout_fd, OpenAbove2(*command.stdout_file, O_WRONLY | O_CREAT | O_APPEND));
  }
  if (command.stderr_fd >= 0) {
    FL_ASSIGN_OR_RETURN(stderr_fd, duplicate(command.stderr_fd));
  } else if (command.stderr_file) {
    FL_ASSIGN_OR_RETURN(stderr_fd, OpenAbove2(*command.stderr_file, O_WRONLY | O_CREAT | O_APPEND));
  }
  FL_ASSIGN_OR_RETURN(Pipe failure_pipe, MakePipe());
  prepared.stdin_fd = stdin_fd.get();
  prepared.stdout_fd = stdout_fd.get();
  prepared.stderr_fd = stderr_fd.get();
  prepared.failure_fd = failure_pipe.write.get();

  int error_number = 0;
  const pid_t pid = Forker::Get().Fork(prepared, error_number);
  if (pid < 0) return FromErrno(error_number, "start " + command.argv[0] + ": fork");
  // Both sides do this, so that the group exists whoever runs first.
  ::setpgid(pid, pid);
  state->pid = pid;
#ifdef SYS_pidfd_open
  state->pidfd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (state->pidfd.valid()) ::fcntl(state->pidfd.get(), F_SETFD, FD_CLOEXEC);
#endif

  failure_pipe.write.Reset();
  StartFailure failure;
  ssize_t count;
  do {
    count = ::read(failure_pipe.read.get(), &failure, sizeof(failure));
  } while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(sizeof(failure))) return DescribeFailure(command, failure);
  return Subprocess(std::move(state));
}

Subprocess::Subprocess(std::unique_ptr<State> state) : state_(std::move(state)) {}
Subprocess::Subprocess(Subprocess&&) noexcept = default;
Subprocess& Subprocess::operator=(Subprocess&&) noexcept = default;
Subprocess::~Subprocess() = default;

int Subprocess::pid() const { return state_->pid; }

Result<ExitInfo> Subprocess::Wait(std::optional<Instant> deadline, std::stop_token stop) {
  Waiter waiter(stop);
  constexpr Duration kPollInterval = std::chrono::milliseconds(5);
  const auto slice =
      state_->pidfd.valid() ? std::optional<Duration>() : std::optional(kPollInterval);
  while (true) {
    if (const auto ended = state_->Poll()) return *ended;
    FL_RETURN_IF_ERROR(waiter.Wait(state_->pidfd.get(), deadline, stop, slice).status());
  }
}

std::optional<ExitInfo> Subprocess::Poll() { return state_->Poll(); }

ExitInfo Subprocess::Terminate(Duration grace) {
  Kill(SIGTERM);
  Result<ExitInfo> ended = Wait(Clock::System().Monotonic() + grace);
  if (ended.ok()) return *ended;
  Kill(SIGKILL);
  return Wait().value();
}

void Subprocess::Kill(int signal) { state_->Kill(signal); }

Status Subprocess::WriteLine(std::string_view line) {
  FL_CHECK_MSG(state_->stdin_pipe.valid(), "WriteLine without pipe_stdin");
  const std::string text = std::string(line) + "\n";
  const NoSigpipe guard;
  for (size_t written = 0; written < text.size();) {
    const ssize_t count =
        ::write(state_->stdin_pipe.get(), text.data() + written, text.size() - written);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EPIPE) return Unavailable("the program closed its standard input");
      return FromErrno(errno, "write to the program's standard input");
    }
    written += static_cast<size_t>(count);
  }
  return OkStatus();
}

Result<std::string> Subprocess::ReadLine(std::optional<Instant> deadline, std::stop_token stop,
                                         size_t limit) {
  FL_CHECK_MSG(state_->stdout_pipe.valid(), "ReadLine without pipe_stdout");
  std::string& buffered = state_->buffered;
  std::optional<Waiter> waiter;
  while (true) {
    const size_t end = buffered.find('\n', state_->searched);
    if (end != std::string::npos && end <= limit) {
      std::string line = buffered.substr(0, end);
      buffered.erase(0, end + 1);
      state_->searched = 0;
      return line;
    }
    state_->searched = buffered.size();
    if (buffered.size() > limit) {
      state_->searched = 0;
      return OutOfRange("the program wrote a line of more than " + std::to_string(limit) +
                        " bytes");
    }
    if (!waiter) waiter.emplace(stop);
    FL_ASSIGN_OR_RETURN(const bool ready, waiter->Wait(state_->stdout_pipe.get(), deadline, stop));
    if (!ready) continue;
    std::array<char, 16384> chunk;
    const ssize_t count = ::read(state_->stdout_pipe.get(), chunk.data(), chunk.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return FromErrno(errno, "read the program's standard output");
    }
    if (count == 0) return Unavailable("the program closed its standard output");
    buffered.append(chunk.data(), static_cast<size_t>(count));
  }
}

Path ExecutableDirectory() {
  std::error_code error;
  const Path self = std::filesystem::read_symlink("/proc/self/exe", error);
  FL_CHECK_MSG(!error, "read /proc/self/exe: " + error.message());
  return self.parent_path();
}

}  // namespace fl::base
