#include "base/subprocess.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

namespace fl::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

Instant In(Duration duration) { return Clock::System().Monotonic() + duration; }

Command Shell(const std::string& script) {
  Command command;
  command.argv = {"/bin/sh", "-c", script};
  return command;
}

Command PipedShell(const std::string& script) {
  Command command = Shell(script);
  command.pipe_stdout = true;
  return command;
}

/// Runs `command` to its end and gives what it printed.
std::vector<std::string> Lines(const Command& command) {
  Result<Subprocess> child = Subprocess::Start(command);
  EXPECT_TRUE(child.ok()) << child.status().ToString();
  std::vector<std::string> lines;
  while (child.ok()) {
    Result<std::string> line = child->ReadLine(In(seconds(30)));
    if (!line.ok()) {
      EXPECT_EQ(line.status().code(), Code::kUnavailable);
      break;
    }
    lines.push_back(*line);
  }
  return lines;
}

class SubprocessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "subprocess.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }

  Path WriteScript(const std::string& name, const std::string& content, int mode = 0755) {
    const Path path = folder_ / name;
    EXPECT_TRUE(WriteFileAtomically(path, content, mode).ok());
    return path;
  }

  Path folder_;
};

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

TEST_F(SubprocessTest, TellsHowItEnded) {
  Result<Subprocess> exits = Subprocess::Start(Shell("exit 3"));
  ASSERT_TRUE(exits.ok());
  const ExitInfo exit = exits->Wait().value();
  EXPECT_EQ(exit.code, 3);
  EXPECT_EQ(exit.signal, 0);
  EXPECT_EQ(exit.ToString(), "exit status 3");
  EXPECT_EQ(exits->Wait().value().code, 3) << "the answer is kept";
  EXPECT_EQ(exits->Poll()->code, 3);

  Result<Subprocess> dies = Subprocess::Start(Shell("kill -SEGV $$"));
  ASSERT_TRUE(dies.ok());
  const ExitInfo death = dies->Wait().value();
  EXPECT_EQ(death.code, -1);
  EXPECT_EQ(death.signal, SIGSEGV);
  EXPECT_EQ(death.ToString(), "killed by signal 11 (SIGSEGV)");
}

TEST_F(SubprocessTest, EnvironmentIsInheritedOrNot) {
  ::setenv("FL_TEST_INHERITED", "from parent", 1);
  Command command = PipedShell("echo \"[$FL_TEST_INHERITED] [$ADDED]\"");
  command.env["ADDED"] = "a=b c";
  EXPECT_THAT(Lines(command), ::testing::ElementsAre("[from parent] [a=b c]"));
  command.env["FL_TEST_INHERITED"] = "other";
  EXPECT_THAT(Lines(command), ::testing::ElementsAre("[other] [a=b c]"));
  command.env.erase("FL_TEST_INHERITED");
  command.inherit_env = false;
  EXPECT_THAT(Lines(command), ::testing::ElementsAre("[] [a=b c]"));
  ::unsetenv("FL_TEST_INHERITED");
}

TEST_F(SubprocessTest, WhatCannotStartSaysWhy) {
  Command command;
  EXPECT_EQ(Subprocess::Start(command).status().code(), Code::kInvalidArgument);

  command.argv = {"no-such-program-here"};
  Status status = Subprocess::Start(command).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("no-such-program-here"));

  command.argv = {(folder_ / "missing").string()};
  EXPECT_EQ(Subprocess::Start(command).status().code(), Code::kNotFound);

  command.argv = {WriteScript("plain", "#!/bin/sh\n", 0644).string()};
  EXPECT_EQ(Subprocess::Start(command).status().code(), Code::kPermissionDenied);

  command.argv = {WriteScript("text", "echo hello\n").string()};
  status = Subprocess::Start(command).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.hint(), HasSubstr("#!"));

  command.argv = {WriteScript("odd", "#!/no/such/interpreter\n").string()};
  status = Subprocess::Start(command).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("interpreter"));

  command = Shell("exit 0");
  command.working_directory = folder_ / "nowhere";
  status = Subprocess::Start(command).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("nowhere"));
}

TEST_F(SubprocessTest, ProgramIsFoundOnTheChildsPath) {
  WriteScript("fl-test-tool", "#!/bin/sh\necho found\n");
  Command command;
  command.argv = {"fl-test-tool"};
  command.pipe_stdout = true;
  command.env["PATH"] = "/nowhere:" + folder_.string();
  EXPECT_THAT(Lines(command), ::testing::ElementsAre("found"));
}

TEST_F(SubprocessTest, WorkingDirectory) {
  Command command = PipedShell("pwd -P");
  command.working_directory = folder_;
  EXPECT_THAT(Lines(command), ::testing::ElementsAre(std::filesystem::canonical(folder_).string()));
}

TEST_F(SubprocessTest, OutputGoesToFilesAndDescriptors) {
  Command command = Shell("echo out; echo err >&2");
  command.stdout_file = folder_ / "out";
  command.stderr_file = folder_ / "err";
  for (int i = 0; i < 2; ++i) {
    Result<Subprocess> child = Subprocess::Start(command);
    ASSERT_TRUE(child.ok());
    EXPECT_EQ(child->Wait().value().code, 0);
  }
  EXPECT_EQ(ReadFile(folder_ / "out").value(), "out\nout\n");
  EXPECT_EQ(ReadFile(folder_ / "err").value(), "err\nerr\n");

  const UniqueFd both(
      ::open((folder_ / "both").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  command = Shell("echo out; echo err >&2");
  command.stdout_fd = both.get();
  command.stderr_fd = both.get();
  Result<Subprocess> child = Subprocess::Start(command);
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child->Wait().value().code, 0);
  EXPECT_EQ(ReadFile(folder_ / "both").value(), "out\nerr\n");
}

TEST_F(SubprocessTest, LinesGoInAndOut) {
  Command command;
  command.argv = {"cat"};
  command.pipe_stdin = true;
  command.pipe_stdout = true;
  Result<Subprocess> child = Subprocess::Start(command);
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(child->WriteLine("first").ok());
  ASSERT_TRUE(child->WriteLine("").ok());
  const std::string longest(100'000, 'x');
  // More than a pipe holds: written while we read.
  std::thread writer([&] { EXPECT_TRUE(child->WriteLine(longest).ok()); });
  EXPECT_EQ(child->ReadLine(In(seconds(30))).value(), "first");
  EXPECT_EQ(child->ReadLine(In(seconds(30))).value(), "");
  EXPECT_EQ(child->ReadLine(In(seconds(30))).value(), longest);
  writer.join();
  EXPECT_EQ(child->ReadLine(In(milliseconds(1))).status().code(), Code::kDeadlineExceeded);
  ASSERT_TRUE(child->WriteLine(std::string(2000, 'y')).ok());
  EXPECT_EQ(child->ReadLine(In(seconds(30)), {}, 100).status().code(), Code::kOutOfRange);
}

TEST_F(SubprocessTest, ClosedPipesAreUnavailable) {
  Command command = PipedShell("exec <&-; echo closed; exec >&-; sleep 1000");
  command.pipe_stdin = true;
  Result<Subprocess> child = Subprocess::Start(command);
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child->ReadLine(In(seconds(30))).value(), "closed");
  EXPECT_EQ(child->WriteLine("nobody reads").code(), Code::kUnavailable);
  EXPECT_EQ(child->ReadLine(In(seconds(30))).status().code(), Code::kUnavailable);
  EXPECT_FALSE(child->Poll().has_value());
}

TEST_F(SubprocessTest, WaitEndsAtDeadlineAndOnStop) {
  Result<Subprocess> child = Subprocess::Start(Shell("sleep 1000"));
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child->Wait(In(milliseconds(1))).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(child->Wait(In(-seconds(1))).status().code(), Code::kDeadlineExceeded);
  std::stop_source source;
  std::thread stopper([&] { source.request_stop(); });
  EXPECT_EQ(child->Wait({}, source.get_token()).status().code(), Code::kCancelled);
  stopper.join();
  EXPECT_FALSE(child->Poll().has_value()) << "still runs";
  std::thread killer([&] { child->Kill(SIGKILL); });
  EXPECT_EQ(child->Wait().value().signal, SIGKILL);
  killer.join();
  child->Kill(SIGKILL);  // of one that has ended: nothing happens
}

TEST_F(SubprocessTest, TerminateIsGentleFirst) {
  Result<Subprocess> polite =
      Subprocess::Start(PipedShell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(polite.ok());
  EXPECT_EQ(polite->ReadLine(In(seconds(30))).value(), "ready");
  EXPECT_EQ(polite->Terminate(seconds(30)).code, 7);

  Result<Subprocess> stubborn =
      Subprocess::Start(PipedShell("trap '' TERM; echo ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(stubborn.ok());
  EXPECT_EQ(stubborn->ReadLine(In(seconds(30))).value(), "ready");
  EXPECT_EQ(stubborn->Terminate(milliseconds(50)).signal, SIGKILL);
}

// The grandchild holds the pipe open, so that end of file proves that it is gone too.
TEST_F(SubprocessTest, GroupDiesWithItsLeader) {
  Result<Subprocess> child = Subprocess::Start(PipedShell("sleep 1000 & echo $!; exit 0"));
  ASSERT_TRUE(child.ok());
  EXPECT_TRUE(child->ReadLine(In(seconds(30))).ok());
  EXPECT_EQ(child->Wait().value().code, 0);
  EXPECT_EQ(child->ReadLine(In(seconds(30))).status().code(), Code::kUnavailable);
}

TEST_F(SubprocessTest, GroupDiesWhenDropped) {
  std::array<int, 2> fds;
  ASSERT_EQ(::pipe2(fds.data(), O_CLOEXEC), 0);
  const UniqueFd read_end(fds[0]);
  UniqueFd write_end(fds[1]);
  {
    Command command = PipedShell("sleep 1000 & echo started; wait");
    command.stderr_fd = write_end.get();
    Result<Subprocess> child = Subprocess::Start(command);
    ASSERT_TRUE(child.ok());
    EXPECT_EQ(child->ReadLine(In(seconds(30))).value(), "started");
  }
  write_end.Reset();
  char byte;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0);
}

TEST_F(SubprocessTest, ChildStartsClean) {
  const UniqueFd leaky(::open("/dev/null", O_RDONLY));  // no O_CLOEXEC, as some libraries do
  EXPECT_THAT(Lines(PipedShell("for n in 3 4 5 6 7 8 9 10 11 12; do"
                               " [ -e /proc/$$/fd/$n ] && echo open $n; done")),
              ::testing::IsEmpty());

  sigset_t blocked;
  sigset_t previous;
  ::sigfillset(&blocked);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &previous);
  const auto handler = ::signal(SIGPIPE, SIG_IGN);
  const auto lines = Lines(PipedShell("grep -E 'Sig(Blk|Ign)' /proc/self/status"));
  ::signal(SIGPIPE, handler);
  ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  EXPECT_THAT(lines,
              ::testing::ElementsAre("SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"));
}

TEST_F(SubprocessTest, NoDescriptorIsLost) {
  const auto run = [] {
    Command command = PipedShell("exit 0");
    command.pipe_stdin = true;
    Result<Subprocess> child = Subprocess::Start(command);
    ASSERT_TRUE(child.ok());
    EXPECT_TRUE(child->Wait().ok());
    command.argv = {"/no/such/program"};
    EXPECT_FALSE(Subprocess::Start(command).ok());
  };
  run();
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 20; ++i) run();
  EXPECT_EQ(OpenDescriptors(), before);
}

// The kernel sends the parent-death signal when the forking thread ends; ours never does.
TEST_F(SubprocessTest, ChildOutlivesTheThreadThatStartedIt) {
  Command command;
  command.argv = {"cat"};
  command.pipe_stdin = true;
  command.pipe_stdout = true;
  std::optional<Subprocess> child;
  std::thread([&] {
    Result<Subprocess> started = Subprocess::Start(command);
    ASSERT_TRUE(started.ok());
    child.emplace(std::move(started).value());
  }).join();
  ASSERT_TRUE(child.has_value());
  ASSERT_TRUE(child->WriteLine("alive").ok());
  EXPECT_EQ(child->ReadLine(In(seconds(30))).value(), "alive");
}

/// Not a test of its own: the process in the middle of DiesWithParent.
TEST(SubprocessHelper, StartsAChildAndWaits) {
  if (::getenv("FL_TEST_SUBPROCESS_HELPER") == nullptr) GTEST_SKIP() << "run by DiesWithParent";
  Command command = Shell("echo child runs >&2; exec sleep 1000");
  Result<Subprocess> child = Subprocess::Start(command);
  ASSERT_TRUE(child.ok());
  EXPECT_TRUE(child->Wait().ok());
}

TEST_F(SubprocessTest, DiesWithParent) {
  std::array<int, 2> fds;
  ASSERT_EQ(::pipe2(fds.data(), O_CLOEXEC), 0);
  const UniqueFd read_end(fds[0]);
  UniqueFd write_end(fds[1]);
  Command command;
  command.argv = {"/proc/self/exe", "--gtest_filter=SubprocessHelper.*"};
  command.env["FL_TEST_SUBPROCESS_HELPER"] = "1";
  command.stdout_file = "/dev/null";
  command.stderr_fd = write_end.get();
  Result<Subprocess> middle = Subprocess::Start(command);
  ASSERT_TRUE(middle.ok());
  write_end.Reset();
  std::array<char, 12> text{};
  ASSERT_EQ(::read(read_end.get(), text.data(), text.size()), 11);
  EXPECT_STREQ(text.data(), "child runs\n");
  ::kill(middle->pid(), SIGKILL);  // only it; its child is in a group of its own
  EXPECT_EQ(middle->Wait().value().signal, SIGKILL);
  EXPECT_EQ(::read(read_end.get(), text.data(), 1), 0) << "the child is gone as well";
}

TEST_F(SubprocessTest, ManyThreadsStartChildren) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([i] {
      for (int j = 0; j < 5; ++j) {
        Result<Subprocess> child = Subprocess::Start(Shell("exit " + std::to_string(i)));
        ASSERT_TRUE(child.ok());
        EXPECT_EQ(child->Wait().value().code, i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ExecutableDirectoryTest, HoldsThisTest) {
  EXPECT_TRUE(std::filesystem::is_directory(ExecutableDirectory()));
  EXPECT_TRUE(std::filesystem::exists(ExecutableDirectory() / "base_test"));
}

}  // namespace
}  // namespace fl::base
