#include "base/cancel.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>

#include "base/file.h"

namespace fl::base {
namespace {

/// A child of ours that runs `body` and exits with what it returns; signals sent to it hit nothing
/// else. `body` writes to the pipe to say that it is ready.
class Child {
 public:
  explicit Child(const std::function<int(int ready)>& body) {
    int ends[2];
    FL_CHECK(::pipe(ends) == 0);
    ready_ = UniqueFd(ends[0]);
    UniqueFd write_end(ends[1]);
    pid_ = ::fork();
    FL_CHECK(pid_ >= 0);
    if (pid_ == 0) ::_exit(body(write_end.get()));
  }
  void AwaitReady() {
    char byte = 0;
    ASSERT_EQ(::read(ready_.get(), &byte, 1), 1);
  }
  void Send(int signal) { ASSERT_EQ(::kill(pid_, signal), 0); }
  int Wait() {
    int status = 0;
    FL_CHECK(::waitpid(pid_, &status, 0) == pid_);
    return status;
  }

 private:
  UniqueFd ready_;
  pid_t pid_ = -1;
};

void Say(int fd) { FL_CHECK(::write(fd, "x", 1) == 1); }

void WaitForStop(const std::stop_token& token) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait(lock, token, [] { return false; });
}

int RunUntilStopped(int ready) {
  const SignalStop stop;
  if (stop.token().stop_requested() || stop.signal() != 0) return 99;
  Say(ready);
  WaitForStop(stop.token());
  return stop.signal();
}

TEST(SignalStop, TurnsSignalsIntoAStop) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Child child(RunUntilStopped);
    child.AwaitReady();
    child.Send(signal);
    const int status = child.Wait();
    ASSERT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), signal);
  }
}

TEST(SignalStop, ASecondInterruptEndsAtOnce) {
  Child child([](int ready) {
    const SignalStop stop;
    Say(ready);
    WaitForStop(stop.token());
    Say(ready);
    while (true) ::pause();  // a shutdown that hangs
    return 0;
  });
  child.AwaitReady();
  child.Send(SIGINT);
  child.AwaitReady();
  child.Send(SIGINT);
  const int status = child.Wait();
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

TEST(SignalStop, StaysStoppableAfterAStraySignal) {
  Child child([](int ready) {
    const SignalStop stop;
    Say(ready);
    WaitForStop(stop.token());
    return stop.signal();
  });
  child.AwaitReady();
  child.Send(SIGUSR2);
  child.Send(SIGTERM);
  const int status = child.Wait();
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), SIGTERM);
}

TEST(SignalStop, ClosedPipesAreErrorsOfTheCall) {
  Child child([](int ready) {
    const SignalStop stop;
    int ends[2];
    if (::pipe(ends) != 0) return 1;
    ::close(ends[0]);
    if (::write(ends[1], "x", 1) != -1 || errno != EPIPE) return 2;
    Say(ready);
    return 0;
  });
  child.AwaitReady();
  EXPECT_EQ(child.Wait(), 0);
}

TEST(SignalStop, GivesTheSignalsBackAtTheEnd) {
  Child child([](int ready) {
    {
      const SignalStop stop;
    }
    Say(ready);
    while (true) ::pause();
    return 0;
  });
  child.AwaitReady();
  child.Send(SIGTERM);
  const int status = child.Wait();
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

}  // namespace
}  // namespace fl::base
