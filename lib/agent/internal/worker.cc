#include "agent/internal/worker.h"

#include <utility>

#include "base/check.h"

namespace fl::agent::internal {

Worker::Worker(Work work, std::function<void()> on_untold)
    : work_(std::move(work)),
      on_untold_(std::move(on_untold)),
      thread_([this](const std::stop_token& stop) { Loop(stop); }) {}

Worker::~Worker() {
  thread_.request_stop();
  Withdraw(base::Duration::zero());
}

std::optional<std::string> Worker::Current() const {
  const std::lock_guard lock(mutex_);
  if (!assignment_) return std::nullopt;
  return assignment_->task.Key();
}

void Worker::Withdraw(base::Duration grace) {
  std::unique_lock lock(mutex_);
  if (!assignment_) return;
  assignment_->withdrawn.request_stop();
  const auto idle = [this] { return !assignment_.has_value(); };
  if (changed_.wait_for(lock, grace, idle)) return;
  assignment_->now.request_stop();
  changed_.wait(lock, idle);
}

void Worker::Begin(wire::Task task, base::Instant received) {
  const std::lock_guard lock(mutex_);
  FL_CHECK(!assignment_.has_value());
  assignment_.emplace(Assignment{.task = std::move(task), .received = received});
  changed_.notify_all();
}

void Worker::Loop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return assignment_.has_value(); })) {
    // Only this thread ends an assignment, so that it stays while the lock is away.
    const Assignment& assignment = *assignment_;
    const TaskStop task_stop{.withdrawn = assignment.withdrawn.get_token(),
                             .now = assignment.now.get_token()};
    lock.unlock();
    const bool told = work_(assignment.task, assignment.received, task_stop);
    lock.lock();
    assignment_.reset();
    changed_.notify_all();
    if (told) continue;
    lock.unlock();
    on_untold_();
    lock.lock();
  }
}

}  // namespace fl::agent::internal
