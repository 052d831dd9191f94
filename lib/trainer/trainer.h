#pragma once

/// The seam between an agent and what trains: a program of the user's (process_trainer.h) or one of
/// ours (builtin.h).

#include <cstdint>
#include <optional>
#include <stop_token>

#include "base/clock.h"
#include "base/status.h"
#include "trainer/task.h"

namespace fl::trainer {

/// One thread at a time.
class Trainer {
 public:
  virtual ~Trainer() = default;

  /// Does `task` and returns what it reports. On success of a kTrain task the file at task.output
  /// has been checked: the names, shapes and dtypes of task.model, only finite numbers, and it is
  /// durable only if the caller makes it so. After an error the output and result files are gone.
  ///
  /// kCancelled on `stop`, kDeadlineExceeded at `deadline` (both end a program of the user's, group
  /// and all). kFailedPrecondition: the trainer or its data failed, and message and hint say what
  /// to fix; nothing in them is the trainer's output. kResourceExhausted: disk or memory.
  /// kInvalidArgument: the task itself is wrong (config, model). The caller decides about retries.
  virtual base::Result<TaskResult> Run(const Task& task, std::optional<base::Instant> deadline,
                                       std::stop_token stop) = 0;
};

/// Checks the weights that a trainer wrote against the model it was given: well-formed, same
/// signature, finite. Reads once, in a stream. kFailedPrecondition with message and hint for the
/// author of the trainer.
base::Status CheckOutput(const base::Path& model, const base::Path& output);

}  // namespace fl::trainer
