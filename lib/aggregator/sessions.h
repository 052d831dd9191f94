#pragma once

/// Who an agent is: one-use challenges, proofs, session tokens. Sessions live in memory; after a
/// restart of the aggregator agents open new ones.

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/ids.h"
#include "base/keys.h"
#include "base/random.h"
#include "base/status.h"
#include "wire/session.h"

namespace fl::aggregator {

/// What a request shows besides its body.
struct SessionProof {
  std::string tls_exporter;                            ///< "" without TLS
  std::optional<std::string> client_certificate_name;  ///< verified by TLS
};

/// One thread at a time (the service's lock).
class Sessions {
 public:
  static constexpr base::Duration kChallengeLifetime = std::chrono::minutes(1);
  static constexpr base::Duration kSessionLifetime = std::chrono::hours(1);
  static constexpr size_t kMaxChallenges = 10'000;

  Sessions(std::string aggregator_id, base::Clock& clock, base::RandomSource& random)
      : aggregator_id_(std::move(aggregator_id)), clock_(clock), random_(random) {}

  /// A challenge for one later proof. The oldest goes where there are too many.
  wire::Challenge NewChallenge();

  /// Whether `request` proves that its sender is the client: a verified certificate with its name,
  /// or a signature by `key` over an unused challenge of ours. Uses the challenge up.
  /// kUnauthenticated where there is no valid proof (ask with a new challenge), kPermissionDenied
  /// for a certificate of another name.
  base::Status CheckProof(const wire::SessionRequest& request, const SessionProof& proof,
                          const std::optional<base::PublicKey>& key);

  /// A session for the client; an older one of it ends.
  wire::Session Open(const base::ClientName& client);
  void Close(const base::ClientName& client);
  /// Whose session it is. kUnauthenticated, which says whether it expired, was replaced by a newer
  /// one or is unknown.
  base::Result<base::ClientName> Authenticate(const std::string& token);
  /// True where the token's session was ended by a newer one of its client.
  bool IsSuperseded(const std::string& token) const;

 private:
  /// Drops those that are over, and the oldest past `most`.
  void ForgetChallenges(size_t most);

  struct Entry {
    base::ClientName client;
    base::Instant expires;
    bool replaced = false;
  };

  const std::string aggregator_id_;
  base::Clock& clock_;
  base::RandomSource& random_;
  std::set<std::string> challenges_;  // not used yet
  // All that were made, oldest first, with their end; used ones stay until then.
  std::deque<std::pair<base::Instant, std::string>> challenge_ends_;
  std::unordered_map<std::string, Entry> sessions_;            // by hash of the token
  std::unordered_map<base::ClientName, std::string> current_;  // → hash of its token
};

}  // namespace fl::aggregator
