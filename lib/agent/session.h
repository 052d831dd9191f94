#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "agent/seams.h"
#include "base/ids.h"
#include "base/keys.h"
#include "base/status.h"
#include "base/version.h"
#include "transport/client.h"
#include "wire/session.h"

namespace fl::agent {

struct SessionOptions {
  std::string aggregator;  ///< URL without a '/' at its end
  base::ClientName client;
  /// What proves who we are. Without one the certificate of the HttpClient must do.
  std::optional<base::PrivateKey> key;
  /// Binds the key to the client where the aggregator has none for it yet.
  std::optional<std::string> join_token;
  std::string software = "fl-agentd/" + std::string(base::kVersion);  ///< for people
};

/// The session of one client with its aggregator: opened when first needed, renewed before it
/// expires and after the aggregator forgot it.
///
/// Opening is tried for ever, with backoff: an aggregator that is not up yet, or does not know the
/// client yet, may be so later. Where a newer session of the same client took over (another process
/// with the same key), this one waits half a minute and longer before it takes back, so that two
/// processes do not fight.
///
/// Thread-safe. The client and the seams outlive the session.
class Session {
 public:
  Session(SessionOptions options, transport::HttpClient& http, Seams seams);

  /// Sends `request`, whose url is a path of the aggregator, with the session. A 401 is answered by
  /// a new session and one more attempt. Blocks while no session can be had. Errors as
  /// HttpClient::Send; kInvalidArgument, which also Open returns at once, is final.
  base::Result<transport::ClientResponse> Send(transport::ClientRequest request);

  const base::ClientName& client() const { return options_.client; }

 private:
  base::Result<base::SessionToken> Token(const std::stop_token& stop);
  /// The aggregator refused `token` by `answer`: the next request opens a new session.
  void Refused(const base::SessionToken& token, const transport::ClientResponse& answer);
  base::Result<wire::Session> Open(const std::stop_token& stop);
  base::Result<wire::Session> OpenOnce(const std::stop_token& stop, bool join);
  base::Result<transport::ClientResponse> Post(const wire::SessionRequest& message,
                                               const std::stop_token& stop);

  const SessionOptions options_;
  transport::HttpClient& http_;
  const Seams seams_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool opening_ = false;                     // guarded by mutex_
  std::optional<base::SessionToken> token_;  // guarded by mutex_
  base::Instant renew_at_;                   // guarded by mutex_
  bool taken_over_ = false;                  // guarded by mutex_
  base::Backoff take_back_;                  // guarded by opening_
};

/// Sends what `make` makes until the aggregator answers with something else than 401, 429 or 5xx,
/// with backoff between attempts (Retry-After respected). Between attempts it ends with kCancelled
/// once `withdrawn`; a request on its way ends only by the stop token that `make` gave it. Errors
/// that another attempt cannot mend are returned.
base::Result<transport::ClientResponse> SendUntilAnswered(
    Session& session, const Seams& seams, const std::stop_token& withdrawn,
    const std::function<base::Result<transport::ClientRequest>()>& make);

}  // namespace fl::agent
