#include "aggregator/sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/encoding.h"
#include "base/testing/simulated_clock.h"
#include "base/testing/status_matchers.h"

namespace fl::aggregator {
namespace {

using base::Code;
using base::IsOk;
using base::StatusIs;
using ::testing::HasSubstr;

class SessionsTest : public ::testing::TestWithParam<base::KeyType> {
 protected:
  wire::SessionRequest Signed(const wire::Challenge& challenge, const std::string& exporter) {
    wire::SessionRequest request;
    request.client = client;
    request.challenge = challenge.challenge;
    request.signature = base::Base64Encode(base::AsBytes(key.Sign(base::AsBytes(
        wire::SessionText(challenge.challenge, challenge.aggregator_id, client, exporter)))));
    return request;
  }
  const base::ClientName client{"site-1"};
  const base::PrivateKey key = *base::PrivateKey::Generate(GetParam());
  base::SimulatedClock clock;
  Sessions sessions{"agg", clock, base::RandomSource::Secure()};
};

TEST_P(SessionsTest, ASignatureOverTheChallengeProves) {
  const wire::SessionRequest request = Signed(sessions.NewChallenge(), "exporter");
  EXPECT_THAT(sessions.CheckProof(request, {"exporter", {}}, key.public_key()), IsOk());
  // One use.
  EXPECT_THAT(sessions.CheckProof(request, {"exporter", {}}, key.public_key()),
              StatusIs(Code::kUnauthenticated, HasSubstr("unknown, used")));
}

TEST_P(SessionsTest, AnotherConnectionKeyClientOrTimeDoesNot) {
  const auto fails = [&](const wire::SessionRequest& request, const SessionProof& proof,
                         const std::optional<base::PublicKey>& with) {
    EXPECT_THAT(sessions.CheckProof(request, proof, with), StatusIs(Code::kUnauthenticated));
  };
  fails(Signed(sessions.NewChallenge(), "exporter"), {"another", {}}, key.public_key());
  fails(Signed(sessions.NewChallenge(), ""), {"exporter", {}}, key.public_key());
  fails(Signed(sessions.NewChallenge(), "e"), {"e", {}},
        base::PrivateKey::Generate(GetParam())->public_key());
  fails(Signed(sessions.NewChallenge(), "e"), {"e", {}}, std::nullopt);
  fails(Signed({"made-up", "agg"}, "e"), {"e", {}}, key.public_key());
  wire::SessionRequest other = Signed(sessions.NewChallenge(), "e");
  other.client = base::ClientName("site-2");
  fails(other, {"e", {}}, key.public_key());
  const wire::SessionRequest old = Signed(sessions.NewChallenge(), "e");
  clock.Advance(Sessions::kChallengeLifetime);
  fails(old, {"e", {}}, key.public_key());
  wire::SessionRequest unsigned_request;
  unsigned_request.client = client;
  fails(unsigned_request, {"e", {}}, key.public_key());
}

TEST_P(SessionsTest, ACertificateOfThatNameProvesAnotherDoesNot) {
  wire::SessionRequest request;
  request.client = client;
  EXPECT_THAT(sessions.CheckProof(request, {"e", "site-1"}, std::nullopt), IsOk());
  EXPECT_THAT(sessions.CheckProof(request, {"e", "site-2"}, std::nullopt),
              StatusIs(Code::kPermissionDenied));
}

TEST_P(SessionsTest, B14_ANewerSessionEndsTheOlder) {
  const std::string first = sessions.Open(client).token.str();
  EXPECT_THAT(sessions.Authenticate(first), base::IsOkAndHolds(client));
  const std::string second = sessions.Open(client).token.str();
  EXPECT_THAT(sessions.Authenticate(first),
              StatusIs(Code::kUnauthenticated, HasSubstr("replaced by a newer one")));
  EXPECT_TRUE(sessions.IsSuperseded(first));
  EXPECT_THAT(sessions.Authenticate(second), base::IsOkAndHolds(client));
  clock.Advance(Sessions::kSessionLifetime);
  EXPECT_THAT(sessions.Authenticate(second), StatusIs(Code::kUnauthenticated));
  EXPECT_THAT(sessions.Authenticate("guess"), StatusIs(Code::kUnauthenticated));
}

TEST_P(SessionsTest, ChallengesAreBounded) {
  const wire::SessionRequest first = Signed(sessions.NewChallenge(), "");
  clock.Advance(std::chrono::seconds(1));
  for (size_t i = 0; i < Sessions::kMaxChallenges; ++i) sessions.NewChallenge();
  EXPECT_THAT(sessions.CheckProof(first, {}, key.public_key()), StatusIs(Code::kUnauthenticated));
}

INSTANTIATE_TEST_SUITE_P(Keys, SessionsTest,
                         ::testing::Values(base::KeyType::kP384, base::KeyType::kEd25519),
                         [](const auto& test) {
                           return test.param == base::KeyType::kP384 ? "P384" : "Ed25519";
                         });

}  // namespace
}  // namespace fl::aggregator
