#pragma once

/// Runs a user's program as README.md describes: started for each task, or kept as a worker.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "trainer/trainer.h"

namespace fl::trainer {

struct ProcessTrainerOptions {
  /// Program and arguments, from the agent's own configuration, never from the wire.
  std::vector<std::string> command;
  /// Keep the program and give it tasks on stdin.
  bool worker = false;
  /// Added to the environment, which is the agent's without the FL_ variables.
  std::map<std::string, std::string> env;
  std::optional<base::Path> working_directory;

  /// Where stdout and stderr go. Beside it, with ".1" added, stays what is older; together they
  /// take `log_limit` bytes at most, and the oldest lines are dropped.
  base::Path log_file;
  uint64_t log_limit = uint64_t{16} << 20;

  /// Longest time for one task, besides the task's own deadline; 0: none.
  base::Duration time_limit{0};
  /// Time between SIGTERM and SIGKILL when a task is cut short.
  base::Duration grace = std::chrono::seconds(2);

  /// The output may be this much larger than the model (other metadata, other padding); a program
  /// that writes more, also to files named as the output and an ending (.tmp), is killed.
  uint64_t output_slack = uint64_t{16} << 20;
  /// The program is killed when less than this is free on the output's file system.
  uint64_t min_free_bytes = uint64_t{64} << 20;
  /// How often sizes and space are looked at.
  base::Duration watch_interval = std::chrono::milliseconds(100);
};

/// A program in a process group of its own. A worker is started at the first task, and again for
/// the next one after it died, hung, or broke the protocol. It dies with this process.
class ProcessTrainer final : public Trainer {
 public:
  /// kInvalidArgument for an empty command or log file.
  static base::Result<std::unique_ptr<ProcessTrainer>> Create(ProcessTrainerOptions options);
  ~ProcessTrainer() override;

  /// The FL_TASK file is written beside task.result, as its name with ".task.json" added, and
  /// removed again.
  base::Result<TaskResult> Run(const Task& task, std::optional<base::Instant> deadline,
                               std::stop_token stop) override;

 private:
  struct State;
  explicit ProcessTrainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fl::trainer
