#pragma once

/// Stand-ins for what an agent talks to, each one function of the test's.

#include <functional>
#include <mutex>
#include <vector>

#include "agent/seams.h"
#include "trainer/trainer.h"
#include "transport/client.h"

namespace fl::agent {

/// An HttpClient that is a function. Keeps what was sent. Thread-safe if the function is.
class ScriptedHttp final : public transport::HttpClient {
 public:
  using Script = std::function<base::Result<transport::ClientResponse>(
      const transport::ClientRequest& request, int number)>;
  explicit ScriptedHttp(Script script) : script_(std::move(script)) {}

  base::Result<transport::ClientResponse> Send(const transport::ClientRequest& request) override {
    int number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = static_cast<int>(sent_.size());
      sent_.push_back(request);
    }
    return script_(request, number);
  }
  std::vector<transport::ClientRequest> sent() const {
    const std::lock_guard lock(mutex_);
    return sent_;
  }

 private:
  const Script script_;
  mutable std::mutex mutex_;
  std::vector<transport::ClientRequest> sent_;
};

/// A Trainer that is a function.
class FunctionTrainer final : public trainer::Trainer {
 public:
  using Function = std::function<base::Result<trainer::TaskResult>(const trainer::Task& task,
                                                                   const std::stop_token& stop)>;
  explicit FunctionTrainer(Function function) : function_(std::move(function)) {}
  base::Result<trainer::TaskResult> Run(const trainer::Task& task, std::optional<base::Instant>,
                                        std::stop_token stop) override {
    return function_(task, stop);
  }

 private:
  const Function function_;
};

/// Waits that take no time and are written down. Thread-safe.
class RecordedSleeps {
 public:
  transport::Sleeper sleeper() {
    return [this](base::Duration duration, const std::stop_token& stop) {
      const std::lock_guard lock(mutex_);
      sleeps_.push_back(duration);
      return stop.stop_requested() ? base::Cancelled("stopped") : base::OkStatus();
    };
  }
  std::vector<base::Duration> sleeps() const {
    const std::lock_guard lock(mutex_);
    return sleeps_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<base::Duration> sleeps_;
};

}  // namespace fl::agent
