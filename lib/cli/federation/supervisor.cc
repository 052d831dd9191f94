#include "cli/federation/supervisor.h"

#include <signal.h>

#include <condition_variable>

namespace fl::cli {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(100);
constexpr auto kFirstPause = std::chrono::milliseconds(200);
constexpr auto kLongestPause = std::chrono::seconds(10);
/// A child that ran this long starts over with short pauses.
constexpr auto kSteady = std::chrono::seconds(30);

base::Instant Now() { return base::Clock::System().Monotonic(); }

}  // namespace

Supervisor::Supervisor() : watcher_([this](std::stop_token stop) { Watch(stop); }) {}

Supervisor::~Supervisor() { Stop(std::chrono::seconds(5)); }

base::Status Supervisor::Start(const std::string& name, const base::Command& command) {
  FL_ASSIGN_OR_RETURN(base::Subprocess process, base::Subprocess::Start(command));
  Adopt(name, command, std::move(process));
  return base::OkStatus();
}

void Supervisor::Adopt(const std::string& name, const base::Command& command,
                       base::Subprocess process) {
  const std::lock_guard lock(mutex_);
  children_.push_back(std::make_unique<Child>(
      Child{name, command, std::move(process),
            base::Backoff(kFirstPause, kLongestPause, base::RandomSource::Secure()), Now(),
            std::nullopt}));
}

std::vector<std::string> Supervisor::TakeNews() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

void Supervisor::Watch(std::stop_token stop) {
  std::mutex waiting;
  std::condition_variable_any pause;
  std::unique_lock wait_lock(waiting);
  while (!stop.stop_requested()) {
    {
      const std::lock_guard lock(mutex_);
      for (const std::unique_ptr<Child>& child : children_) Check(*child);
    }
    pause.wait_for(wait_lock, stop, kLookEvery, [] { return false; });
  }
}

void Supervisor::Check(Child& child) {
  if (child.restart_at) {
    if (Now() < *child.restart_at) return;
    child.restart_at.reset();
    base::Result<base::Subprocess> process = base::Subprocess::Start(child.command);
    child.started = Now();
    if (process.ok()) {
      child.process = *std::move(process);
    } else {
      news_.push_back(child.name + " cannot be started again: " + process.status().message());
      child.restart_at = Now() + child.backoff.Next();
    }
    return;
  }
  const std::optional<base::ExitInfo> exit = child.process.Poll();
  if (!exit) return;
  if (Now() - child.started > kSteady) child.backoff.Reset();
  news_.push_back(child.name + " ended (" + exit->ToString() + ") and is started again");
  child.restart_at = Now() + child.backoff.Next();
}

void Supervisor::Stop(base::Duration grace) {
  watcher_.request_stop();
  if (watcher_.joinable()) watcher_.join();
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Child>& child : children_) child->process.Kill(SIGTERM);
  const base::Instant deadline = Now() + grace;
  for (const std::unique_ptr<Child>& child : children_) {
    if (!child->process.Wait(deadline).ok()) child->process.Terminate(base::Duration(0));
  }
  children_.clear();
}

}  // namespace fl::cli
