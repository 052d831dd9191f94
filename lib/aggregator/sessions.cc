#include "aggregator/sessions.h"

#include <algorithm>
#include <array>

#include "base/digest.h"
#include "base/encoding.h"

namespace fl::aggregator {
namespace {

std::string RandomText(base::RandomSource& random) {
  std::array<uint8_t, 32> bytes;
  random.Fill(bytes);
  return base::HexEncode(bytes);
}

}  // namespace

wire::Challenge Sessions::NewChallenge() {
  const base::Instant now = clock_.Monotonic();
  std::erase_if(challenges_, [now](const auto& entry) { return entry.second <= now; });
  if (challenges_.size() >= kMaxChallenges) {
    challenges_.erase(
        std::min_element(challenges_.begin(), challenges_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; }));
  }
  std::string challenge = RandomText(random_);
  challenges_[challenge] = now + kChallengeLifetime;
  return {std::move(challenge), aggregator_id_};
}

base::Status Sessions::CheckProof(const wire::SessionRequest& request, const SessionProof& proof,
                                  const std::optional<base::PublicKey>& key) {
  if (proof.client_certificate_name) {
    if (*proof.client_certificate_name == request.client.str()) return base::OkStatus();
    return base::PermissionDenied("the certificate is for \"" + *proof.client_certificate_name +
                                  "\", not for client \"" + request.client.str() + "\"");
  }
  if (!request.challenge || !request.signature) {
    return base::Unauthenticated("no proof of the client's key");
  }
  const auto found = challenges_.find(*request.challenge);
  if (found == challenges_.end() || found->second <= clock_.Monotonic()) {
    return base::Unauthenticated("the challenge is unknown, used or older than a minute");
  }
  challenges_.erase(found);
  if (!key)
    return base::Unauthenticated("no key is known of client \"" + request.client.str() + "\"");
  const base::Result<std::vector<uint8_t>> signature = base::Base64Decode(*request.signature);
  if (!signature.ok()) return base::Unauthenticated("the signature is not base64 text");
  const std::string text =
      wire::SessionText(*request.challenge, aggregator_id_, request.client, proof.tls_exporter);
  if (!key->Verify(base::AsBytes(text), *signature).ok()) {
    return base::Unauthenticated(
        "the signature is not by the key of client \"" + request.client.str() + "\" (" +
            key->Fingerprint() + ") for this connection",
        "check keyFile against the client's publicKey; a proxy that ends TLS cannot stand between");
  }
  return base::OkStatus();
}

wire::Session Sessions::Open(const base::ClientName& client) {
  const base::Instant now = clock_.Monotonic();
  std::erase_if(sessions_, [now](const auto& entry) { return entry.second.expires <= now; });
  if (const auto found = current_.find(client); found != current_.end()) {
    const auto old = sessions_.find(found->second);
    if (old != sessions_.end()) old->second.replaced = true;
  }
  wire::Session session;
  session.token = base::SessionToken(RandomText(random_));
  session.expires_in_seconds =
      std::chrono::duration_cast<std::chrono::seconds>(kSessionLifetime).count();
  session.aggregator_id = aggregator_id_;
  const std::string hash = base::Digest::Of(session.token.str()).Hex();
  sessions_[hash] = {client, now + kSessionLifetime, false};
  current_[client] = hash;
  return session;
}

void Sessions::Close(const base::ClientName& client) {
  const auto found = current_.find(client);
  if (found == current_.end()) return;
  sessions_.erase(found->second);
  current_.erase(found);
}

base::Result<base::ClientName> Sessions::Authenticate(const std::string& token) {
  const auto found = sessions_.find(base::Digest::Of(token).Hex());
  if (found == sessions_.end()) {
    return base::Unauthenticated("the session is unknown or has expired", "open a new session");
  }
  if (found->second.replaced) {
    return base::Unauthenticated(
        "the session of client \"" + found->second.client.str() + "\" was replaced by a newer one",
        "two agents may be running with the same key: stop one of them");
  }
  if (found->second.expires <= clock_.Monotonic()) {
    return base::Unauthenticated("the session has expired", "open a new session");
  }
  return found->second.client;
}

bool Sessions::IsSuperseded(const std::string& token) const {
  const auto found = sessions_.find(base::Digest::Of(token).Hex());
  return found != sessions_.end() && found->second.replaced;
}

}  // namespace fl::aggregator
