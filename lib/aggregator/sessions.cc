#include "aggregator/sessions.h"

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
  std::string challenge = RandomText(random_);
  ForgetChallenges(kMaxChallenges - 1);
  challenges_.insert(challenge);
  challenge_ends_.emplace_back(clock_.Monotonic() + kChallengeLifetime, challenge);
  return {std::move(challenge), aggregator_id_};
}

void Sessions::ForgetChallenges(size_t most) {
  const base::Instant now = clock_.Monotonic();
  while (!challenge_ends_.empty() &&
         (challenge_ends_.front().first <= now || challenge_ends_.size() > most)) {
    challenges_.erase(challenge_ends_.front().second);
    challenge_ends_.pop_front();
  }
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
  ForgetChallenges(kMaxChallenges);
  if (challenges_.erase(*request.challenge) == 0) {
    return base::Unauthenticated("the challenge is unknown, used or older than a minute");
  }
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
