#pragma once

/// Opening a session (POST /v1/agents). A first request without proof is answered 401 with a
/// one-use challenge; the second carries the challenge and a signature over SessionText by the
/// client's key; the answer is a token. With a client certificate, or a join token, see
/// SessionRequest.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"

namespace fl::wire {

struct SessionRequest {
  base::ClientName client;
  std::string software;                   ///< "fl-agentd/0.1.0", for people
  std::optional<std::string> challenge;   ///< as the 401 gave it
  std::optional<std::string> signature;   ///< base64 of the signature over SessionText
  std::optional<std::string> public_key;  ///< OpenSSH line; only together with join_token
  std::optional<std::string> join_token;  ///< binds public_key to the client, once
};

/// The body of the 401.
struct Challenge {
  std::string challenge;      ///< opaque, one use, valid for a minute
  std::string aggregator_id;  ///< who asks; enters the signed text
};

/// The body of the 200.
struct Session {
  base::SessionToken token;
  int64_t expires_in_seconds = 0;
  std::string aggregator_id;
};

/// What the client signs: the fields and the TLS exporter value of the connection (32 bytes; empty
/// on a plain connection), each with its length, after a fixed prefix, so that no two sets of
/// fields give the same text.
std::string SessionText(std::string_view challenge, std::string_view aggregator_id,
                        const base::ClientName& client, std::string_view tls_exporter);

std::string ToJson(const SessionRequest& message);
std::string ToJson(const Challenge& message);
std::string ToJson(const Session& message);
base::Result<SessionRequest> SessionRequestFromJson(std::string_view text);
base::Result<Challenge> ChallengeFromJson(std::string_view text);
base::Result<Session> SessionFromJson(std::string_view text);

}  // namespace fl::wire
