#include "transport/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/subprocess.h"
#include "base/testing/simulated_clock.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"

namespace fl::transport {
namespace {

using base::Code;
using base::IsOk;
using base::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CertificatesTest : public ::testing::Test {
 protected:
  CertificatesTest() : authority_(CertificateAuthority::Create("The CA", clock_).value()) {}

  /// What openssl says about `certificate` for `purpose` at the clock's time.
  int OpensslVerify(const std::string& certificate, const std::string& purpose,
                    const std::vector<std::string>& more = {}) {
    EXPECT_THAT(base::WriteFileAtomically(folder_ / "ca", authority_.certificate_pem()), IsOk());
    EXPECT_THAT(base::WriteFileAtomically(folder_ / "cert", certificate), IsOk());
    const int64_t now =
        std::chrono::duration_cast<std::chrono::seconds>(clock_.Now().time_since_epoch()).count();
    base::Command command;
    command.argv = {
        "openssl",  "verify", "-x509_strict", "-CAfile",          (folder_ / "ca").string(),
        "-purpose", purpose,  "-attime",      std::to_string(now)};
    command.argv.insert(command.argv.end(), more.begin(), more.end());
    command.argv.push_back((folder_ / "cert").string());
    command.stdout_file = command.stderr_file = folder_ / "out";
    return base::Subprocess::Start(command)->Wait()->code;
  }

  base::TemporaryDirectory folder_;
  base::SimulatedClock clock_;
  CertificateAuthority authority_;
};

TEST_F(CertificatesTest, OpensslTrustsWhatIsIssuedForWhatItIsIssuedFor) {
  ASSERT_OK_AND_ASSIGN(
      const CertificateAndKey server,
      authority_.IssueServer({"fl.example.org", "*.pods.example", "127.0.0.1", "::1"}, clock_));
  EXPECT_EQ(OpensslVerify(server.certificate_pem, "sslserver"), 0);
  EXPECT_EQ(
      OpensslVerify(server.certificate_pem, "sslserver", {"-verify_hostname", "fl.example.org"}),
      0);
  EXPECT_EQ(
      OpensslVerify(server.certificate_pem, "sslserver", {"-verify_hostname", "a.pods.example"}),
      0);
  EXPECT_EQ(OpensslVerify(server.certificate_pem, "sslserver", {"-verify_ip", "::1"}), 0);
  EXPECT_NE(OpensslVerify(server.certificate_pem, "sslserver", {"-verify_hostname", "other"}), 0);
  EXPECT_NE(OpensslVerify(server.certificate_pem, "sslclient"), 0);

  ASSERT_OK_AND_ASSIGN(const CertificateAndKey client,
                       authority_.IssueClient("hospital-a", clock_));
  EXPECT_EQ(OpensslVerify(client.certificate_pem, "sslclient"), 0);
  EXPECT_NE(OpensslVerify(client.certificate_pem, "sslserver"), 0);
  const std::string long_name = std::string(60, 'a') + "." + std::string(60, 'b');
  ASSERT_OK_AND_ASSIGN(const CertificateAndKey longer, authority_.IssueClient(long_name, clock_));
  EXPECT_EQ(OpensslVerify(longer.certificate_pem, "sslclient"), 0);
  EXPECT_THAT(InspectCertificate(longer.certificate_pem)->common_name, IsEmpty());
  EXPECT_THAT(InspectCertificate(longer.certificate_pem)->hosts, ElementsAre(long_name));
}

TEST_F(CertificatesTest, AreInspected) {
  ASSERT_OK_AND_ASSIGN(
      const CertificateAndKey server,
      authority_.IssueServer({"fl.example.org", "10.1.2.3", "2001:db8::1"}, clock_, 10 * kDay));
  ASSERT_OK_AND_ASSIGN(const CertificateInfo info, InspectCertificate(server.certificate_pem));
  EXPECT_EQ(info.common_name, "fl.example.org");
  EXPECT_EQ(info.issuer_common_name, "The CA");
  EXPECT_THAT(info.hosts, ElementsAre("fl.example.org", "10.1.2.3", "2001:db8::1"));
  EXPECT_EQ(info.not_before, clock_.Now() - std::chrono::hours(1));
  EXPECT_EQ(info.not_after, clock_.Now() + 10 * kDay);
  EXPECT_FALSE(info.is_authority);
  EXPECT_EQ(info.sha256_fingerprint.size(), 64u);
  EXPECT_TRUE(InspectCertificate(authority_.certificate_pem())->is_authority);
  EXPECT_THAT(InspectCertificate("hello"), StatusIs(Code::kInvalidArgument, HasSubstr("PEM")));
}

TEST_F(CertificatesTest, AnAuthorityIsLoadedAgainAndIssuesAsBefore) {
  ASSERT_OK_AND_ASSIGN(
      const CertificateAuthority loaded,
      CertificateAuthority::Load(authority_.certificate_pem(), authority_.key_pem()));
  ASSERT_OK_AND_ASSIGN(const CertificateAndKey client, loaded.IssueClient("a", clock_));
  EXPECT_EQ(OpensslVerify(client.certificate_pem, "sslclient"), 0);

  ASSERT_OK_AND_ASSIGN(const CertificateAuthority other,
                       CertificateAuthority::Create("Other", clock_));
  EXPECT_THAT(CertificateAuthority::Load(authority_.certificate_pem(), other.key_pem()),
              StatusIs(Code::kInvalidArgument, HasSubstr("does not belong")));
  EXPECT_THAT(CertificateAuthority::Load(client.certificate_pem, client.key_pem),
              StatusIs(Code::kInvalidArgument, HasSubstr("not that of an authority")));
  EXPECT_THAT(CertificateAuthority::Load("x", authority_.key_pem()),
              StatusIs(Code::kInvalidArgument, HasSubstr("authority's certificate")));
  EXPECT_THAT(CertificateAuthority::Load(authority_.certificate_pem(), "x"),
              StatusIs(Code::kInvalidArgument, HasSubstr("authority's key")));
}

TEST_F(CertificatesTest, AnIssuedCertificateIsNoAuthority) {
  ASSERT_OK_AND_ASSIGN(const CertificateAndKey client, authority_.IssueClient("a", clock_));
  const CertificateInfo info = InspectCertificate(client.certificate_pem).value();
  EXPECT_FALSE(info.is_authority);
}

TEST_F(CertificatesTest, MalformedNamesAreRefused) {
  for (const std::string bad : {"", "a b", "a,DNS:evil", "-a", "a-", "a..b", ".a", "a.", "a_b", "*",
                                "a.*.b", "h\xc3\xa9", "1.2.3.4:5", "x\nDNS:y"}) {
    EXPECT_THAT(authority_.IssueServer({"good", bad}, clock_),
                StatusIs(Code::kInvalidArgument, HasSubstr("neither a DNS name nor an IP")))
        << bad;
    EXPECT_THAT(authority_.IssueClient(bad, clock_),
                StatusIs(Code::kInvalidArgument, HasSubstr("no DNS name")))
        << bad;
  }
  EXPECT_THAT(authority_.IssueClient("*.a", clock_),
              StatusIs(Code::kInvalidArgument, HasSubstr("no DNS name")));
  EXPECT_THAT(authority_.IssueServer({}, clock_),
              StatusIs(Code::kInvalidArgument, HasSubstr("host name")));
}

TEST_F(CertificatesTest, CheckTellsExpiryFromMismatch) {
  ASSERT_OK_AND_ASSIGN(const CertificateAndKey one, authority_.IssueServer({"a"}, clock_, kDay));
  ASSERT_OK_AND_ASSIGN(const CertificateAndKey two, authority_.IssueServer({"b"}, clock_));
  EXPECT_THAT(CheckCertificate(one, clock_.Now()), IsOk());
  EXPECT_THAT(CheckCertificate({one.certificate_pem, two.key_pem}, clock_.Now()),
              StatusIs(Code::kInvalidArgument, HasSubstr("does not belong")));
  EXPECT_THAT(CheckCertificate(one, clock_.Now() + 2 * kDay),
              StatusIs(Code::kFailedPrecondition, HasSubstr("\"a\" expired at ")));
  EXPECT_THAT(CheckCertificate(one, clock_.Now() - kDay),
              StatusIs(Code::kFailedPrecondition, HasSubstr("valid only from")));
  EXPECT_NE(OpensslVerify(one.certificate_pem, "sslclient"), 0);
  clock_.Advance(2 * kDay);
  EXPECT_NE(OpensslVerify(one.certificate_pem, "sslserver"), 0);
}

}  // namespace
}  // namespace fl::transport
