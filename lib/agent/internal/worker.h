#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "agent/update_sender.h"
#include "base/clock.h"
#include "wire/task.h"

namespace fl::agent::internal {

/// A thread that does one task at a time, and can be told that it is no longer wanted. Methods are
/// for one thread, the one that polls.
class Worker {
 public:
  /// Does a task; true where the aggregator knows what came of it (see TaskRunner::Run).
  using Work =
      std::function<bool(const wire::Task& task, base::Instant received, const TaskStop& stop)>;

  /// `on_untold` runs on the worker's thread after a task whose outcome the aggregator does not
  /// know; the worker is idle then.
  Worker(Work work, std::function<void()> on_untold);
  /// Calls off what is running.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Key of the task that is being done.
  std::optional<std::string> Current() const;
  /// Calls off the task, if there is one, and returns when nothing runs. A delivery that is on its
  /// way gets `grace` to be answered.
  void Withdraw(base::Duration grace);
  /// Begins `task`. Nothing may be running.
  void Begin(wire::Task task, base::Instant received);

 private:
  struct Assignment {
    wire::Task task;
    base::Instant received;
    std::stop_source withdrawn;
    std::stop_source now;
  };
  void Loop(const std::stop_token& stop);

  const Work work_;
  const std::function<void()> on_untold_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Assignment> assignment_;  // guarded by mutex_
  std::jthread thread_;                   // last: it uses all of the above
};

}  // namespace fl::agent::internal
