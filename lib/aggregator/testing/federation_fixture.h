#pragma once

/// A daemon's core and engine on a folder of the test's own, with pretended agents: time moves when
/// the test says so, and the daemon can be dropped and opened again at any step.

#include <memory>
#include <string>
#include <vector>

#include "aggregator/core.h"
#include "aggregator/engine.h"
#include "base/testing/simulated_clock.h"
#include "base/testing/temporary_directory.h"
#include "spec/types.h"
#include "transport/http.h"

namespace fl::aggregator {

class FederationFixture {
 public:
  /// A model of one tensor "w" F32 [2] = {1, 2} with the initial version 0.
  FederationFixture();

  /// Closes the daemon (as a crash would: nothing is flushed) and opens it on the same folder.
  void Restart();
  /// Clients "a", "b", …, all connected.
  void AddClients(int count);
  void Connect(const std::string& client);
  void Disconnect(const std::string& client);
  /// Submits the job; `changes` are applied to it first.
  void Submit(const std::function<void(spec::FederatedLearningJob&)>& changes = {});
  /// What the client is asked to do, or "".
  std::string TaskOf(const std::string& client);
  /// Uploads weights {w0, w1} as the client's update of the running round; the answer.
  transport::Response Upload(const std::string& client, float w0, float w1, int64_t samples = 1);
  /// The same for raw bytes; `announced` is the digest in the header, by default that of the bytes.
  transport::Response UploadBytes(const std::string& client, const std::string& bytes,
                                  int64_t samples = 1, std::optional<base::Digest> announced = {});
  std::string UpdateBytes(float w0, float w1) const;
  void Fail(const std::string& client, const std::string& reason);
  void SetSuspend(bool suspend);
  void SetAborted();
  void Retry();

  const JobState& job() { return core->FindJob(base::JobName("job"))->state; }
  /// The weights of a version.
  std::vector<float> Weights(int64_t version);
  /// Number of versions after the initial one.
  int64_t Versions();

  base::TemporaryDirectory folder;
  base::SimulatedClock clock;
  std::unique_ptr<Core> core;
  std::unique_ptr<Engine> engine;
  std::vector<std::string> connected;
  Evaluator evaluator;  ///< used from the next Restart on

 private:
  void Open();
  void Configure(const std::function<void(spec::FederatedLearningJob&)>& change);
};

}  // namespace fl::aggregator
