#pragma once

/// A daemon with its HTTP server on a port of its own, and pretended agents that talk to it as real
/// ones do: sessions by signature, real sockets.

#include <map>
#include <memory>
#include <string>

#include "aggregator/service.h"
#include "base/keys.h"
#include "base/testing/temporary_directory.h"
#include "spec/types.h"
#include "transport/client.h"
#include "wire/task.h"

namespace fl::aggregator {

class ServiceFixture {
 public:
  /// A model of one tensor "w" F32 [2] = {1, 2}; clients "a", "b", …; no job yet.
  explicit ServiceFixture(int clients);

  /// Gives the daemon the job "job" with `changes`, past what administrators may ask of this
  /// version.
  void Submit(const std::function<void(spec::FederatedLearningJob&)>& changes = {});
  /// Opens a session of the client and returns its token.
  std::string OpenSession(const std::string& client);
  /// The task that a long poll is answered with; fails the test's process where there is none.
  wire::Task PollTask(const std::string& client, const std::string& token);
  /// PUT with the session `token`.
  transport::ClientResponse Put(const std::string& path, transport::RequestBody body,
                                const std::string& token, transport::Headers headers = {});
  /// Weights {w0, w1} as the client's update of the task.
  transport::ClientResponse PutUpdate(const wire::Task& task, const std::string& client,
                                      const std::string& token, float w0, float w1,
                                      transport::Headers headers = {});
  std::string UpdateBytes(float w0, float w1) const;
  /// Returns once the job has finished.
  void WaitUntilFinished();
  /// The weights of a version.
  std::vector<float> Weights(int64_t version);

  base::TemporaryDirectory folder;
  std::unique_ptr<Service> service;

 private:
  transport::ClientResponse Send(transport::ClientRequest request);

  std::map<std::string, base::PrivateKey> keys_;
  std::unique_ptr<transport::HttpClient> http_;
};

}  // namespace fl::aggregator
