#include "base/digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/encoding.h"
#include "base/testing/status_matchers.h"

namespace fl::base {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kEmpty =
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
// FIPS 180-4's example messages.
constexpr std::string_view kAbc =
    "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr std::string_view kMillionA =
    "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Digest, KnowsThePublishedExamples) {
  EXPECT_EQ(Digest::Of("").ToString(), kEmpty);
  EXPECT_EQ(Digest::Of("abc").ToString(), kAbc);
  EXPECT_EQ(Digest::Of(std::string(1'000'000, 'a')).ToString(), kMillionA);
}

TEST(Digest, OfAStreamIsThatOfTheWhole) {
  Sha256 hash;
  for (int i = 0; i < 1000; ++i) {
    hash.Update(AsBytes(std::string(static_cast<size_t>(i % 3 == 0 ? 1000 : 1), 'a')));
    hash.Update({});
  }
  const std::string all(334 * 1000 + 666, 'a');
  Sha256 moved = std::move(hash);
  EXPECT_EQ(std::move(moved).Finish(), Digest::Of(all));
}

TEST(Digest, TheDefaultStandsForNone) {
  EXPECT_TRUE(Digest().empty());
  EXPECT_FALSE(Digest::Of("").empty());
  EXPECT_LT(Digest(), Digest::Of(""));
}

TEST(Digest, IsReadAsOciWritesIt) {
  EXPECT_THAT(Digest::Parse(kAbc), IsOkAndHolds(Digest::Of("abc")));
  EXPECT_EQ(Digest::Parse(kAbc)->Hex(), kAbc.substr(7));
  const std::string hex(kAbc.substr(7));
  for (const std::string& bad :
       {std::string(), std::string("sha256:"), hex, "sha512:" + hex, "sha256:" + hex + "0",
        "sha256:" + hex.substr(1), "SHA256:" + hex, "sha256:" + hex.substr(1) + "g",
        "sha256:BA" + hex.substr(2), "sha256: " + hex.substr(1), "sha256:../" + hex.substr(3)}) {
    EXPECT_THAT(Digest::Parse(bad), StatusIs(Code::kInvalidArgument, HasSubstr(bad))) << bad;
  }
}

TEST(Digest, IsReadFromReprDigestHeaders) {
  const std::string empty = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:";
  EXPECT_EQ(Digest::Of("").ToReprDigest(), empty);
  const std::string abc = Digest::Of("abc").ToReprDigest();
  for (const std::string& good :
       {empty, "sha-512=:AAAA:, " + empty, empty + ", sha-512=:AAAA:", "unixsum=1,\t" + empty,
        empty + ";q=1", abc + "," + empty, "not-" + abc + ", " + empty}) {
    EXPECT_THAT(Digest::ParseReprDigest(good), IsOkAndHolds(Digest::Of(""))) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("sha-256="), std::string("sha-256=::"),
        std::string("sha-256=:AAAA:"), empty.substr(0, empty.size() - 1), "x" + empty,
        "not-" + empty, std::string("sha-512=:AAAA:"), std::string("SHA-256=abc"),
        std::string("sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=:"),
        abc + ", sha-256=:AAAA:"}) {
    EXPECT_THAT(Digest::ParseReprDigest(bad), StatusIs(Code::kInvalidArgument, HasSubstr(bad)));
  }
}

}  // namespace
}  // namespace fl::base
