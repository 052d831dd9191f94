#pragma once

/// The loop of an agent: poll, work, poll again.

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/blob_cache.h"
#include "agent/config.h"
#include "agent/seams.h"
#include "agent/session.h"
#include "agent/task_runner.h"
#include "base/file.h"
#include "base/status.h"
#include "transport/client.h"

namespace fl::agent {

/// What an agent stands on. `make_trainer` is needed (MakeTrainer for real use), the others have
/// their real ones.
struct AgentDependencies {
  TaskRunner::TrainerFactory make_trainer;
  Seams seams;
  std::function<base::Result<std::unique_ptr<transport::HttpClient>>(transport::ClientOptions)>
      make_http = transport::MakeCurlClient;
  /// How long a poll is parked at the aggregator.
  base::Duration poll_wait = std::chrono::seconds(30);
};

/// One client: a thread polls, which is the heartbeat too, and another does the task meanwhile, so
/// that one whose round is over is called off at once.
class Agent {
 public:
  /// Reads keys and tokens. `blobs` is shared by the agents of a process and outlives them all.
  /// kInvalidArgument, kNotFound, kPermissionDenied name the file.
  static base::Result<std::unique_ptr<Agent>> Create(const Config& config,
                                                     const ClientConfig& client, BlobCache& blobs,
                                                     const AgentDependencies& dependencies);
  ~Agent();

  /// Works until `stop`, and then returns OK as soon as a running trainer was ended. Another status
  /// means that going on is pointless (kInvalidArgument). Once.
  base::Status Run(const std::stop_token& stop);

 private:
  class Impl;
  explicit Agent(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// All clients of `config` in this process, each with its Agent, on a locked work folder. Returns
/// OK after `stop`, or the first error that ends an agent (the others are stopped then).
/// kFailedPrecondition where another process has the work folder.
base::Status RunAgents(const Config& config, const std::stop_token& stop,
                       const AgentDependencies& dependencies);

}  // namespace fl::agent
