#include "base/encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "base/testing/status_matchers.h"

namespace fl::base {
namespace {

std::vector<uint8_t> Bytes(std::string_view text) { return {text.begin(), text.end()}; }

// RFC 4648, section 10.
TEST(Encoding, KnowsTheVectorsOfTheRfc) {
  const struct {
    std::string_view plain, base64, hex;
  } vectors[] = {
      {"", "", ""},
      {"f", "Zg==", "66"},
      {"fo", "Zm8=", "666f"},
      {"foo", "Zm9v", "666f6f"},
      {"foob", "Zm9vYg==", "666f6f62"},
      {"fooba", "Zm9vYmE=", "666f6f6261"},
      {"foobar", "Zm9vYmFy", "666f6f626172"},
      {"\xfb\xff", "+/8=", "fbff"},
  };
  for (const auto& vector : vectors) {
    EXPECT_EQ(Base64Encode(AsBytes(vector.plain)), vector.base64);
    EXPECT_THAT(Base64Decode(vector.base64), IsOkAndHolds(Bytes(vector.plain)));
    EXPECT_EQ(HexEncode(AsBytes(vector.plain)), vector.hex);
    EXPECT_THAT(HexDecode(vector.hex), IsOkAndHolds(Bytes(vector.plain)));
  }
  EXPECT_THAT(HexDecode("FBff"), IsOkAndHolds(Bytes("\xfb\xff")));
}

TEST(Encoding, BytesOfEveryLengthComeBack) {
  SeededRandom random({1});
  for (size_t size = 0; size < 100; ++size) {
    std::vector<uint8_t> bytes(size);
    random.Fill(bytes);
    EXPECT_THAT(Base64Decode(Base64Encode(bytes)), IsOkAndHolds(bytes));
    EXPECT_THAT(HexDecode(HexEncode(bytes)), IsOkAndHolds(bytes));
  }
}

TEST(Encoding, Base64IsStrict) {
  for (const std::string_view bad :
       {"Z", "Zg", "Zg=", "Zg===", "Zg==Zg==", "=", "==", "===", "====", "Z===", "Zm9vYg=",
        "Zm8=\n", "Zm\n8=", " Zm8=", "Zm8 =", "Zm_v", "Zm-v", "Zm9v=", "Zm=v", "Zm9v\xc3\xa4==",
        // Unused bits set: a second text for the same bytes.
        "Zh==", "Zm9=", "Zm9vYo=="}) {
    EXPECT_THAT(Base64Decode(bad), StatusIs(Code::kInvalidArgument)) << bad;
  }
  EXPECT_THAT(Base64Decode(std::string_view("Zm\0v", 4)), StatusIs(Code::kInvalidArgument));
}

TEST(Encoding, HexIsStrict) {
  for (const std::string_view bad : {"f", "0x", "0g", " 00", "0 ", "fff"}) {
    EXPECT_THAT(HexDecode(bad), StatusIs(Code::kInvalidArgument)) << bad;
  }
}

TEST(Encoding, ConstantTimeEqualIsEqual) {
  EXPECT_TRUE(ConstantTimeEqual("", ""));
  EXPECT_TRUE(ConstantTimeEqual("token", "token"));
  EXPECT_FALSE(ConstantTimeEqual("token", "tokem"));
  EXPECT_FALSE(ConstantTimeEqual("token", "toke"));
  EXPECT_FALSE(ConstantTimeEqual("", "t"));
  EXPECT_FALSE(ConstantTimeEqual(std::string_view("a\0b", 3), std::string_view("a\0c", 3)));
}

}  // namespace
}  // namespace fl::base
