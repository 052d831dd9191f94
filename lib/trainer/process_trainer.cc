#include "trainer/process_trainer.h"

#include <signal.h>

#include <algorithm>

#include "base/subprocess.h"
#include "trainer/internal/bounded_log.h"

extern char** environ;

namespace fl::trainer {
namespace {

using base::ExitInfo;
using base::FailedPrecondition;
using base::Result;
using base::Status;
using base::Subprocess;

/// Our environment without what is for us: FL_ variables hold tokens and settings of the agent.
std::map<std::string, std::string> PublicEnvironment() {
  std::map<std::string, std::string> env;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || text.starts_with("FL_")) continue;
    env.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return env;
}

/// True for `name` itself and for what programs write first and rename: `name`.tmp and the like.
bool BelongsTo(const base::Path& entry, const std::string& name) {
  const std::string other = entry.filename().string();
  return other == name || other.starts_with(name + ".");
}

/// Size of `path` and of what belongs to it.
uint64_t SizeWithSiblings(const base::Path& path) {
  uint64_t size = 0;
  std::error_code error;
  const std::string name = path.filename().string();
  const base::Path folder = path.has_parent_path() ? path.parent_path() : ".";
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (!BelongsTo(it->path(), name)) continue;
    std::error_code gone;
    const uint64_t bytes = it->file_size(gone);
    if (!gone) size += bytes;
  }
  return size;
}

/// Removes `path` and what belongs to it.
void RemoveWithSiblings(const base::Path& path) {
  if (path.empty()) return;
  std::error_code error;
  const std::string name = path.filename().string();
  const base::Path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::vector<base::Path> found;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (BelongsTo(it->path(), name)) found.push_back(it->path());
  }
  for (const base::Path& each : found) std::filesystem::remove_all(each, error);
}

bool OutOfTime(const Status& status) { return status.code() == base::Code::kDeadlineExceeded; }

}  // namespace

struct ProcessTrainer::State {
  explicit State(ProcessTrainerOptions o) : options(std::move(o)) {}

  ProcessTrainerOptions options;
  std::unique_ptr<internal::BoundedLog> log;
  std::optional<Subprocess> worker;
  bool worker_usable = false;  // after the last answer

  // About the task that runs.
  uint64_t output_limit = 0;
  std::optional<base::Instant> deadline;
  std::stop_token stop;

  Result<Subprocess> Start(const std::string& task_file);
  Status Watch(const Task& task);
  Result<ExitInfo> WaitForExit(const Task& task, Subprocess& program);
  Status RunOnce(const Task& task, const std::string& task_file);
  Status AskWorker(const Task& task, const std::string& task_file);
  Status ReadAnswer(const Task& task, const std::string& task_file);
  Status Failed(const ExitInfo& exit) const;
  Status DescribeTimeout() const;
  Result<TaskResult> Collect(const Task& task) const;
};

ProcessTrainer::ProcessTrainer(std::unique_ptr<State> state) : state_(std::move(state)) {}

ProcessTrainer::~ProcessTrainer() {
  // A worker that waits for its next task has nothing to lose, but may have folders to tidy up.
  if (state_->worker) state_->worker->Terminate(state_->options.grace);
}

Result<std::unique_ptr<ProcessTrainer>> ProcessTrainer::Create(ProcessTrainerOptions options) {
  if (options.command.empty() || options.command[0].empty()) {
    return base::InvalidArgument("a trainer needs a command");
  }
  if (options.log_file.empty()) return base::InvalidArgument("a trainer needs a log file");
  auto state = std::make_unique<State>(std::move(options));
  FL_ASSIGN_OR_RETURN(
      state->log, internal::BoundedLog::Open(state->options.log_file, state->options.log_limit));
  return std::unique_ptr<ProcessTrainer>(new ProcessTrainer(std::move(state)));
}

Result<Subprocess> ProcessTrainer::State::Start(const std::string& task_file) {
  base::Command command;
  command.argv = options.command;
  command.inherit_env = false;
  command.env = PublicEnvironment();
  for (const auto& [name, value] : options.env) command.env[name] = value;
  if (!options.worker) command.env["FL_TASK"] = task_file;
  command.working_directory = options.working_directory;
  FL_ASSIGN_OR_RETURN(const base::UniqueFd pipe, log->OpenPipe());
  command.stderr_fd = pipe.get();
  command.stdout_fd = pipe.get();
  command.pipe_stdin = options.worker;
  command.pipe_stdout = options.worker;
  Result<Subprocess> program = Subprocess::Start(command);
  if (program.ok()) return program;
  return FailedPrecondition("the trainer does not start: " + program.status().message(),
                            program.status().hint());
}

/// Looks at what the program does to the disk.
Status ProcessTrainer::State::Watch(const Task& task) {
  const base::Path& output = task.output.empty() ? task.result : task.output;
  if (SizeWithSiblings(output) > output_limit) {
    return base::ResourceExhausted(
        "the trainer wrote more than " + std::to_string(output_limit) + " bytes as weights",
        "weights are as large as the model; keep checkpoints elsewhere");
  }
  const Result<uint64_t> free = base::FreeSpace(output);
  if (free.ok() && *free < options.min_free_bytes) {
    return base::ResourceExhausted("the disk of " + output.parent_path().string() +
                                       " is nearly full: " + std::to_string(*free) +
                                       " bytes are left while the trainer runs",
                                   "free some space, or let the trainer write less");
  }
  return base::OkStatus();
}

Status ProcessTrainer::State::Failed(const ExitInfo& exit) const {
  std::string hint = "its output is in " + options.log_file.string() + " at the agent";
  if (exit.signal == SIGKILL) hint += "; SIGKILL from outside often means out of memory";
  if (exit.code == 127) hint += "; a shell exits with 127 where it does not find a command";
  return FailedPrecondition("the trainer failed: " + exit.ToString(), std::move(hint));
}

Status ProcessTrainer::State::DescribeTimeout() const {
  return base::DeadlineExceeded("the trainer did not end in time and was killed",
                                "let it do less in a round, or raise the time limit; its output "
                                "is in " +
                                    options.log_file.string() + " at the agent");
}

/// Waits for the end of `program`, which is ended early for time, stop and disk.
Result<ExitInfo> ProcessTrainer::State::WaitForExit(const Task& task, Subprocess& program) {
  while (true) {
    const base::Instant now = base::Clock::System().Monotonic();
    base::Instant next = now + options.watch_interval;
    if (deadline) next = std::min(next, *deadline);
    const Result<ExitInfo> exit = program.Wait(next, stop);
    if (exit.ok()) return *exit;
    Status problem = exit.status();
    if (OutOfTime(problem)) {
      problem = deadline && base::Clock::System().Monotonic() >= *deadline ? DescribeTimeout()
                                                                           : Watch(task);
    }
    if (problem.ok()) continue;
    program.Terminate(options.grace);
    return problem;
  }
}

Status ProcessTrainer::State::RunOnce(const Task& task, const std::string& task_file) {
  FL_ASSIGN_OR_RETURN(Subprocess program, Start(task_file));
  FL_ASSIGN_OR_RETURN(const ExitInfo exit, WaitForExit(task, program));
  if (exit.code == 0) return base::OkStatus();
  // What stopped it may be the disk, which the last look came too early for.
  const Status disk = Watch(task);
  return disk.ok() ? Failed(exit) : disk;
}

/// Reads the worker's lines until its answer to `task_file`.
Status ProcessTrainer::State::ReadAnswer(const Task& task, const std::string& task_file) {
  constexpr size_t kLongestLine = size_t{1} << 20;
  worker_usable = false;
  while (true) {
    const base::Instant now = base::Clock::System().Monotonic();
    base::Instant next = now + options.watch_interval;
    if (deadline) next = std::min(next, *deadline);
    const Result<std::string> line = worker->ReadLine(next, stop, kLongestLine);
    if (!line.ok() && OutOfTime(line.status())) {
      if (deadline && base::Clock::System().Monotonic() >= *deadline) return DescribeTimeout();
      FL_RETURN_IF_ERROR(Watch(task));
      continue;
    }
    if (!line.ok() && line.status().code() == base::Code::kUnavailable) {
      const ExitInfo exit = worker->Terminate(options.grace);
      const Status disk = Watch(task);
      if (!disk.ok()) return disk;
      Status failed = Failed(exit);
      return Status(failed.code(), failed.message() + ", in the middle of a task", failed.hint());
    }
    if (!line.ok() && line.status().code() == base::Code::kOutOfRange) {
      return FailedPrecondition("the trainer broke the worker protocol: " +
                                line.status().message());
    }
    if (!line.ok()) return line.status();
    if (*line == "done " + task_file) {
      worker_usable = true;
      return base::OkStatus();
    }
    if (line->starts_with("done ")) {
      return FailedPrecondition(
          "the trainer broke the worker protocol: it answered \"done\" for "
          "another task",
          "answer `done PATH` with the path that was read");
    }
    log->Write(*line);
    if (line->starts_with("error ")) {
      worker_usable = true;
      return FailedPrecondition("the trainer reported an error",
                                "its message is in " + options.log_file.string() + " at the agent");
    }
  }
}

Status ProcessTrainer::State::AskWorker(const Task& task, const std::string& task_file) {
  if (worker && worker->Poll()) worker.reset();  // it died between tasks
  bool fresh = !worker.has_value();
  if (!fresh && !worker->WriteLine(task_file).ok()) {
    worker.reset();
    fresh = true;
  }
  if (fresh) {
    FL_ASSIGN_OR_RETURN(Subprocess started, Start(task_file));
    worker.emplace(std::move(started));
    // Where it died at once, reading the answer tells how.
    if (const Status written = worker->WriteLine(task_file);
        !written.ok() && written.code() != base::Code::kUnavailable) {
      return written;
    }
  }
  const Status answer = ReadAnswer(task, task_file);
  if (!worker_usable) {
    worker->Terminate(options.grace);
    worker.reset();
  }
  return answer;
}

Result<TaskResult> ProcessTrainer::State::Collect(const Task& task) const {
  Result<TaskResult> result = ReadTaskResult(task.result);
  if (!result.ok()) {
    const Status& status = result.status();
    if (status.code() == base::Code::kNotFound) {
      return FailedPrecondition("the trainer wrote no result",
                                "write {\"num_samples\": N, \"metrics\": {}} to the path in "
                                "\"result\" of the task");
    }
    return FailedPrecondition("the trainer's " + status.message(), status.hint());
  }
  if (task.kind == TaskKind::kTrain) FL_RETURN_IF_ERROR(CheckOutput(task.model, task.output));
  return result;
}

Result<TaskResult> ProcessTrainer::Run(const Task& given, std::optional<base::Instant> deadline,
                                       std::stop_token stop) {
  State& state = *state_;
  const ProcessTrainerOptions& options = state.options;
  std::error_code error;
  // The program may have another working directory than we have.
  Task task = given;
  for (base::Path* path : {&task.model, &task.output, &task.result}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path, error);
  }
  const uint64_t model_size = std::filesystem::file_size(task.model, error);
  if (error) return base::FromErrno(error.value(), "open model " + task.model.string());
  state.output_limit = model_size + options.output_slack;
  state.deadline = deadline;
  if (options.time_limit > base::Duration(0)) {
    const base::Instant limit = base::Clock::System().Monotonic() + options.time_limit;
    state.deadline = deadline ? std::min(*deadline, limit) : limit;
  }
  state.stop = std::move(stop);

  // What an earlier attempt left must not pass for this one's.
  RemoveWithSiblings(task.output);
  RemoveWithSiblings(task.result);
  const std::string task_file = task.result.string() + ".task.json";
  FL_RETURN_IF_ERROR(base::WriteFileAtomically(task_file, ToJson(task), 0600));
  const Status ran =
      options.worker ? state.AskWorker(task, task_file) : state.RunOnce(task, task_file);
  Result<TaskResult> result = ran.ok() ? state.Collect(task) : Result<TaskResult>(ran);
  std::filesystem::remove(task_file, error);
  if (!result.ok()) {
    RemoveWithSiblings(task.output);
    RemoveWithSiblings(task.result);
  }
  return result;
}

}  // namespace fl::trainer
