#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/keys.h"
#include "transport/certificates.h"
#include "transport/server.h"
#include "wire/task.h"

namespace fl::agent {

/// The least that an agent can be run against: a real server with TLS that checks the proof of each
/// session, hands out the task that a test gave it, serves blobs, and keeps what is sent to it. It
/// decides nothing about rounds: the test says what is answered. Thread-safe.
class ScriptedAggregator final : public transport::Handler {
 public:
  /// A body that was sent, whole.
  struct Received {
    std::string path;
    transport::Headers headers;
    std::string body;
  };

  /// `port` 0: any that is free.
  explicit ScriptedAggregator(base::Path folder, int port = 0);
  ~ScriptedAggregator() override;

  int port() const { return server_->port(); }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port()); }
  const std::string& ca_pem() const { return authority_.certificate_pem(); }

  void AddClient(const base::ClientName& client, base::PublicKey key);
  /// Serves `content` as a blob.
  base::Digest AddBlob(const std::string& content);
  /// What `client` is to do from now on; none calls the task off.
  void SetTask(const base::ClientName& client, std::optional<wire::Task> task);
  /// As after a restart: no token is known.
  void ForgetSessions();
  /// As if another process had opened a session for every client.
  void SupersedeSessions();
  /// The next updates are answered with these statuses; later ones with 200.
  void AnswerUpdates(std::deque<int> statuses);

  /// A task goes on until `n` of its client's deliveries were taken (1 unless told): with 2, a poll
  /// cannot tell an agent that the update whose answer it lost has arrived.
  void EndTasksAfter(int n);

  /// Waits for the n-th (from 1) delivery to a path that contains `what`, and returns it.
  Received WaitFor(const std::string& what, size_t n = 1);
  size_t Count(const std::string& what) const;
  /// Waits until `n` sessions were opened since the start.
  void WaitForSessions(int n);
  /// Waits until a poll of `client` is parked; with `busy`, one that names a current task.
  void WaitForPoll(const base::ClientName& client, bool busy);
  int blob_requests() const;
  /// Range fields of the blob requests, "" where there was none.
  std::vector<std::string> ranges() const;

  transport::Accept OnRequest(const transport::RequestContext& context) override;

 private:
  struct Poll {
    base::ClientName client;
    std::optional<std::string> current;
    transport::Responder responder;
  };
  transport::Accept OpenSession(const transport::RequestContext& context);
  std::optional<transport::Response> CheckToken(const transport::RequestContext& context,
                                                base::ClientName* client);
  transport::Accept TaskPoll(const transport::RequestContext& context,
                             const base::ClientName& client);
  transport::Accept Delivery(const transport::RequestContext& context,
                             const base::ClientName& client);
  void AnswerPolls();  // mutex_ held
  void Wait(const std::function<bool()>& done);

  const base::Path folder_;
  const transport::CertificateAuthority authority_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<base::ClientName, base::PublicKey> keys_;
  std::map<std::string, base::ClientName> tokens_;
  std::map<std::string, base::ClientName> superseded_;
  std::map<base::ClientName, wire::Task> tasks_;
  std::deque<int> update_statuses_;
  int deliveries_of_a_task_ = 1;
  std::map<base::ClientName, int> taken_;
  std::vector<Poll> polls_;
  std::vector<Received> received_;
  std::vector<std::string> ranges_;
  int sessions_ = 0;
  std::unique_ptr<transport::Server> server_;
};

}  // namespace fl::agent
