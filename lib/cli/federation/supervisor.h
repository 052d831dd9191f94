#pragma once

/// Keeps the daemons of `fl run` running.

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/backoff.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace fl::cli {

/// Starts programs, starts those again that end by themselves (after a pause that grows), and ends
/// all of them together. They die with this process. Thread-safe.
class Supervisor {
 public:
  Supervisor();
  /// Stop.
  ~Supervisor();

  /// kNotFound where the program is missing.
  base::Status Start(const std::string& name, const base::Command& command);
  /// Takes over a program that runs; `command` starts it again.
  void Adopt(const std::string& name, const base::Command& command, base::Subprocess process);
  /// What ended by itself and was started again, for the user.
  std::vector<std::string> TakeNews();
  /// Ends all: SIGTERM, then SIGKILL after `grace`.
  void Stop(base::Duration grace);

 private:
  struct Child {
    std::string name;
    base::Command command;
    base::Subprocess process;
    base::Backoff backoff;
    base::Instant started;
    std::optional<base::Instant> restart_at;
  };
  void Watch(std::stop_token stop);
  void Check(Child& child);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Child>> children_;
  std::vector<std::string> news_;
  std::jthread watcher_;
};

}  // namespace fl::cli
