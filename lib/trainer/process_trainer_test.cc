#include "trainer/process_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

#include "tensor/safetensors.h"

namespace fl::trainer {
namespace {

using base::Code;
using base::Path;
using base::Status;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

/// Shell functions for trainers: `field NAME` is a string field of the task file $1.
constexpr char kPrelude[] = R"sh(#!/bin/sh
field() { sed -n 's/.*"'"$2"'":"\([^"]*\)".*/\1/p' "$1"; }
good() {
  cp "$(field "$1" model)" "$(field "$1" output)"
  echo '{"num_samples": 5, "num_steps": 2, "metrics": {"loss": 0.5}}' > "$(field "$1" result)"
}
)sh";

class ProcessTrainerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "trainer.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    task_.job = base::JobName("job");
    task_.round = base::RoundNumber(1);
    task_.client = base::ClientName("a");
    task_.model = folder_ / "model.safetensors";
    task_.output = folder_ / "output.safetensors";
    task_.result = folder_ / "result.json";
    task_.dataset = "file:data.csv";
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    ASSERT_TRUE(WriteModel("model.safetensors", {2, 3}, values));
  }
  void TearDown() override {
    trainer_.reset();
    EXPECT_TRUE(base::RemoveTree(folder_).ok());
  }

  bool WriteModel(const std::string& name, const std::vector<uint64_t>& shape,
                  const std::vector<float>& values) {
    return tensor::WriteSafetensors(folder_ / name,
                                    {tensor::Tensor::FromFloats("w1", shape, values)})
        .ok();
  }

  ProcessTrainerOptions Options(const std::string& script) {
    const Path path = folder_ / "trainer.sh";
    EXPECT_TRUE(base::WriteFileAtomically(path, kPrelude + script, 0755).ok());
    ProcessTrainerOptions options;
    options.command = {path.string()};
    options.log_file = folder_ / "log";
    options.grace = milliseconds(200);
    options.watch_interval = milliseconds(5);
    options.min_free_bytes = 0;
    return options;
  }

  ProcessTrainerOptions WorkerOptions(const std::string& body) {
    ProcessTrainerOptions options = Options("echo start >> " + (folder_ / "starts").string() +
                                            "\nwhile read task; do\n" + body + "\ndone\n");
    options.worker = true;
    return options;
  }

  void Make(const ProcessTrainerOptions& options) {
    trainer_ = ProcessTrainer::Create(options).value();
  }

  base::Result<TaskResult> Run() { return trainer_->Run(task_, deadline_, stop_); }

  base::Result<TaskResult> RunScript(const std::string& script) {
    Make(Options(script));
    return Run();
  }

  /// What went wrong; that nothing is left behind is checked on the way.
  Status Failure(const std::string& script) {
    const Status status = RunScript(script).status();
    EXPECT_FALSE(status.ok()) << script;
    ExpectClean();
    return status;
  }

  void ExpectClean() {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      EXPECT_FALSE(name.starts_with("output") || name.starts_with("result")) << name;
    }
  }

  std::string Log() {
    trainer_.reset();  // its log is whole then
    return base::ReadFile(folder_ / "log").value_or("");
  }
  int64_t Starts() {
    const std::string text = base::ReadFile(folder_ / "starts").value();
    return std::count(text.begin(), text.end(), '\n');
  }

  Path folder_;
  Task task_;
  std::optional<base::Instant> deadline_;
  std::stop_token stop_;
  std::unique_ptr<ProcessTrainer> trainer_;
};

TEST_F(ProcessTrainerTest, RunsAProgramOnce) {
  const auto result = RunScript("echo hello; echo trouble >&2; good \"$FL_TASK\"");
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(*result, (TaskResult{5, 2, {{"loss", 0.5}}}));
  EXPECT_EQ(base::ReadFile(task_.output).value(), base::ReadFile(task_.model).value());
  EXPECT_FALSE(std::filesystem::exists(task_.result.string() + ".task.json"));
  EXPECT_EQ(Log(), "hello\ntrouble\n");
}

TEST_F(ProcessTrainerTest, ProgramSeesTheTaskAndNoSecrets) {
  ::setenv("FL_TOKEN", "secret", 1);
  ::setenv("FL_JOIN_TOKEN", "secret", 1);
  ::setenv("OTHER_VARIABLE", "seen", 1);
  ProcessTrainerOptions options = Options("cat \"$FL_TASK\"; env; good \"$FL_TASK\"");
  options.env["ADDED"] = "yes";
  Make(options);
  ASSERT_TRUE(Run().ok());
  ::unsetenv("FL_TOKEN");
  ::unsetenv("FL_JOIN_TOKEN");
  ::unsetenv("OTHER_VARIABLE");
  const std::string log = Log();
  EXPECT_THAT(log, HasSubstr(ToJson(task_)));
  EXPECT_THAT(log, HasSubstr("ADDED=yes"));
  EXPECT_THAT(log, HasSubstr("OTHER_VARIABLE=seen"));
  EXPECT_THAT(log, Not(HasSubstr("secret")));
}

TEST_F(ProcessTrainerTest, EvaluationNeedsNoWeights) {
  task_.kind = TaskKind::kEvaluate;
  task_.output.clear();
  const auto result = RunScript("echo '{\"num_samples\": 3}' > \"$(field \"$FL_TASK\" result)\"");
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->num_samples, 3);
}

TEST_F(ProcessTrainerTest, RelativePathsAndAnotherWorkingDirectory) {
  ASSERT_TRUE(base::MakeDirectories(folder_ / "elsewhere").ok());
  const Path here = std::filesystem::current_path();
  task_.model = task_.model.lexically_relative(here);
  task_.output = task_.output.lexically_relative(here);
  task_.result = task_.result.lexically_relative(here);
  ProcessTrainerOptions options = Options("good \"$FL_TASK\"");
  options.working_directory = folder_ / "elsewhere";
  Make(options);
  EXPECT_TRUE(Run().ok());
}

TEST_F(ProcessTrainerTest, FailureGivesTheReasonAndNotTheOutput) {
  Status status = Failure("echo private-data; echo private-data >&2; exit 3");
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(status.message(), "the trainer failed: exit status 3");
  EXPECT_THAT(status.hint(), HasSubstr((folder_ / "log").string()));
  EXPECT_THAT(status.ToString(), Not(HasSubstr("private-data")));
  EXPECT_THAT(Log(), HasSubstr("private-data"));

  status = Failure("kill -SEGV $$");
  EXPECT_THAT(status.message(), HasSubstr("SIGSEGV"));
  status = Failure("kill -KILL $$");
  EXPECT_THAT(status.hint(), HasSubstr("out of memory"));
  status = Failure("no-such-command-here");
  EXPECT_THAT(status.hint(), HasSubstr("127"));

  ProcessTrainerOptions options = Options("");
  options.command = {"/no/such/trainer"};
  Make(options);
  status = Run().status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("does not start"));
  EXPECT_THAT(status.message(), HasSubstr("/no/such/trainer"));
}

TEST_F(ProcessTrainerTest, OptionsThatAreWrong) {
  EXPECT_EQ(ProcessTrainer::Create({}).status().code(), Code::kInvalidArgument);
  ProcessTrainerOptions options;
  options.command = {"x"};
  EXPECT_EQ(ProcessTrainer::Create(options).status().code(), Code::kInvalidArgument);
}

TEST_F(ProcessTrainerTest, WhatItWroteIsChecked) {
  const std::string result = "echo '{\"num_samples\": 5}' > \"$(field \"$FL_TASK\" result)\"\n";
  const std::string output = "\"$(field \"$FL_TASK\" output)\"\n";
  EXPECT_THAT(Failure("exit 0").message(), HasSubstr("wrote no result"));
  EXPECT_THAT(Failure(result).message(), HasSubstr("wrote no weights"));
  EXPECT_THAT(
      Failure("good \"$FL_TASK\"; echo nonsense > \"$(field \"$FL_TASK\" result)\"").message(),
      HasSubstr("result: not valid JSON"));
  EXPECT_THAT(Failure("good \"$FL_TASK\"; echo '{\"num_samples\": -1}' > "
                      "\"$(field \"$FL_TASK\" result)\"")
                  .message(),
              HasSubstr("num_samples is below 0"));
  EXPECT_THAT(Failure("good \"$FL_TASK\"; head -c 2000000 /dev/zero > "
                      "\"$(field \"$FL_TASK\" result)\"")
                  .message(),
              HasSubstr("larger than"));
  EXPECT_THAT(Failure(result + "echo garbage > " + output).message(), HasSubstr("weights"));
  EXPECT_THAT(Failure(result + "mkdir " + output).message(), HasSubstr("not a regular file"));
  EXPECT_THAT(Failure(result + "mkfifo " + output).message(), HasSubstr("not a regular file"));
  EXPECT_THAT(Failure(result + "head -c 60 \"$(field \"$FL_TASK\" model)\" > " + output).message(),
              HasSubstr("weights"));

  ASSERT_TRUE(WriteModel("shape", {3, 2}, {1, 2, 3, 4, 5, 6}));
  const Status shape = Failure(result + "cp " + (folder_ / "shape").string() + " " + output);
  EXPECT_EQ(shape.code(), Code::kFailedPrecondition);
  EXPECT_THAT(shape.message(), HasSubstr("tensor \"w1\" has shape [3,2], the model has [2,3]"));
  ASSERT_TRUE(WriteModel("nan", {2, 3}, {1, 2, NAN, 4, 5, 6}));
  EXPECT_THAT(Failure(result + "cp " + (folder_ / "nan").string() + " " + output).message(),
              HasSubstr("w1"));
}

TEST_F(ProcessTrainerTest, WhatAnEarlierAttemptLeftIsNotTaken) {
  ASSERT_TRUE(base::WriteFileAtomically(task_.result, "{\"num_samples\": 1}").ok());
  std::filesystem::copy_file(task_.model, task_.output);
  EXPECT_THAT(Failure("exit 0").message(), HasSubstr("wrote no result"));
}

// The pipe in the hands of a grandchild proves that the whole group is gone.
TEST_F(ProcessTrainerTest, HangIsKilledGroupAndAll) {
  ProcessTrainerOptions options =
      Options("trap '' TERM\n(trap '' TERM; sleep 1000) &\nwhile :; do sleep 1000; done");
  options.time_limit = milliseconds(100);
  Make(options);
  const Status status = Run().status();
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("did not end in time"));
  ExpectClean();
}

TEST_F(ProcessTrainerTest, DeadlineAndStop) {
  Make(Options("echo partial > \"$(field \"$FL_TASK\" output)\"; exec sleep 1000"));
  deadline_ = base::Clock::System().Monotonic() + milliseconds(100);
  EXPECT_EQ(Run().status().code(), Code::kDeadlineExceeded);
  ExpectClean();
  deadline_.reset();
  std::stop_source source;
  source.request_stop();
  stop_ = source.get_token();
  EXPECT_EQ(Run().status().code(), Code::kCancelled);
  ExpectClean();
}

TEST_F(ProcessTrainerTest, TooMuchOutputIsStopped) {
  for (const char* ending : {"", ".tmp"}) {
    ProcessTrainerOptions options =
        Options(std::string("cat /dev/zero > \"$(field \"$FL_TASK\" output)") + ending + "\"");
    options.output_slack = 1 << 20;
    Make(options);
    const Status status = Run().status();
    EXPECT_EQ(status.code(), Code::kResourceExhausted);
    EXPECT_THAT(status.message(), HasSubstr("as weights"));
    ExpectClean();
  }
}

TEST_F(ProcessTrainerTest, FullDiskIsNamed) {
  ProcessTrainerOptions options = Options("exec sleep 1000");
  options.min_free_bytes = UINT64_MAX;
  Make(options);
  const Status status = Run().status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("nearly full"));
  options = Options("exit 1");  // ends before the first look at the disk
  options.watch_interval = seconds(100);
  options.min_free_bytes = UINT64_MAX;
  Make(options);
  EXPECT_EQ(Run().status().code(), Code::kResourceExhausted);
}

TEST_F(ProcessTrainerTest, LogStaysSmall) {
  ProcessTrainerOptions options =
      Options("head -c 3000000 /dev/zero | tr '\\0' 'x'; echo end; good \"$FL_TASK\"");
  options.log_limit = 100'000;
  Make(options);
  ASSERT_TRUE(Run().ok());
  const std::string log = Log();
  const std::string older = base::ReadFile(folder_ / "log.1").value();
  EXPECT_LE(log.size(), 50'000U);
  EXPECT_LE(older.size(), 50'000U);
  EXPECT_THAT(older + log, ::testing::EndsWith("xend\n"));
}

TEST_F(ProcessTrainerTest, WorkerStaysForManyTasks) {
  Make(WorkerOptions("echo working on it; good \"$task\"; echo \"done $task\""));
  for (int i = 0; i < 3; ++i) {
    const auto result = Run();
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_EQ(result->num_samples, 5);
  }
  EXPECT_EQ(Starts(), 1);
  EXPECT_EQ(Log(), "working on it\nworking on it\nworking on it\n");
}

TEST_F(ProcessTrainerTest, WorkerThatReportsAnErrorGoesOn) {
  Make(WorkerOptions("if [ -e " + (folder_ / "broken").string() +
                     " ]; then echo \"error private-data\"; else good \"$task\"; echo \"done "
                     "$task\"; fi"));
  ASSERT_TRUE(Run().ok());
  ASSERT_TRUE(base::WriteFileAtomically(folder_ / "broken", "").ok());
  const Status status = Run().status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("reported an error"));
  EXPECT_THAT(status.ToString(), Not(HasSubstr("private-data")));
  ExpectClean();
  ASSERT_TRUE(base::RemoveFile(folder_ / "broken").ok());
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Starts(), 1);
  EXPECT_THAT(Log(), HasSubstr("private-data"));
}

TEST_F(ProcessTrainerTest, WorkerThatDiedBetweenTasksIsStartedAgain) {
  Make(WorkerOptions("good \"$task\"; echo \"done $task\"; exit 0"));
  for (int i = 0; i < 5; ++i) {
    const auto result = Run();
    ASSERT_TRUE(result.ok()) << result.status().ToString();
  }
  EXPECT_EQ(Starts(), 5);
}

TEST_F(ProcessTrainerTest, WorkerThatDiesInATaskCostsThatTask) {
  Make(WorkerOptions("if mkdir " + (folder_ / "once").string() +
                     " 2>/dev/null; then kill -SEGV $$; fi; good \"$task\"; echo \"done $task\""));
  const Status status = Run().status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("SIGSEGV"));
  EXPECT_THAT(status.message(), HasSubstr("in the middle of a task"));
  ExpectClean();
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(Starts(), 2);
}

TEST_F(ProcessTrainerTest, WorkerThatHangsCostsThatTask) {
  ProcessTrainerOptions options =
      WorkerOptions("if mkdir " + (folder_ / "once").string() +
                    " 2>/dev/null; then sleep 1000; fi; good \"$task\"; echo \"done $task\"");
  options.time_limit = milliseconds(300);
  Make(options);
  EXPECT_EQ(Run().status().code(), Code::kDeadlineExceeded);
  ExpectClean();
  options.time_limit = base::Duration(0);
  Make(options);
  EXPECT_TRUE(Run().ok());
}

TEST_F(ProcessTrainerTest, WorkerThatBreaksTheProtocol) {
  Make(WorkerOptions("good \"$task\"; echo \"done /some/other/task\""));
  EXPECT_THAT(Run().status().message(), HasSubstr("another task"));
  Make(WorkerOptions("head -c 3000000 /dev/zero | tr '\\0' 'x'; echo"));
  EXPECT_THAT(Run().status().message(), HasSubstr("worker protocol"));
  Make(WorkerOptions("exec >&-; sleep 1000"));
  EXPECT_FALSE(Run().ok());
  ProcessTrainerOptions options = Options("exit 9");
  options.worker = true;
  Make(options);
  EXPECT_THAT(Run().status().message(), HasSubstr("exit status 9"));
}

TEST_F(ProcessTrainerTest, WorkerEndsWithItsTrainer) {
  Make(WorkerOptions("good \"$task\"; echo \"done $task\"; echo $$ > " +
                     (folder_ / "pid").string()));
  ASSERT_TRUE(Run().ok());
  trainer_.reset();
  // Written after the answer: it may have been ended before.
  const auto pid = base::ReadFile(folder_ / "pid");
  if (pid.ok() && !pid->empty()) {
    EXPECT_EQ(::kill(static_cast<pid_t>(std::stol(*pid)), 0), -1);
  }
}

}  // namespace
}  // namespace fl::trainer
