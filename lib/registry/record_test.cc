#include "registry/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace fl::registry {
namespace {

using base::Code;
using base::StatusIs;
using ::testing::HasSubstr;

// The format is a contract: others read it.
constexpr std::string_view kLine =
    R"({"seq":3,"prev":"sha256:00000000000000000000000000000000000000000000000000000000000000ff",)"
    R"("time":"2026-11-30T20:54:58.123Z","type":"pinned","data":{"manifest":"m","version":2}})";

TEST(RecordTest, LineComesBackAsItWas) {
  ASSERT_OK_AND_ASSIGN(const Record record, ParseRecord(kLine));
  EXPECT_EQ(record.sequence, 3);
  EXPECT_EQ(record.previous.Hex().substr(62), "ff");
  EXPECT_EQ(base::FormatTime(record.time), "2026-11-30T20:54:58.123Z");
  EXPECT_EQ(record.type, "pinned");
  EXPECT_EQ(record.data, R"({"manifest":"m","version":2})");
  EXPECT_EQ(record.hash, base::Digest::Of(kLine));
  EXPECT_EQ(FormatRecord(record), kLine);
}

TEST(RecordTest, LinesThatAreNotRecordsAreRefused) {
  const auto without = [](std::string_view part, std::string_view instead) {
    std::string line(kLine);
    const size_t at = line.find(part);
    FL_CHECK(at != std::string::npos);
    return line.replace(at, part.size(), instead);
  };
  for (const std::string& line :
       {std::string(), std::string("{}"), std::string("[1]"), std::string(kLine.substr(0, 100)),
        std::string(kLine) + "x", std::string(kLine) + std::string(kLine),
        without("\"seq\":3", "\"seq\":-3"), without("\"seq\":3", "\"seq\":3.0"),
        without("\"seq\":3", "\"seq\":\"3\""), without("\"seq\":3", "\"seq\":18446744073709551615"),
        without("\"seq\":3", "\"seq\":3,\"seq\":3"), without("sha256:", "sha512:"),
        without("ff\"", "fg\""), without("2026-11-30T", "2026-13-30T"),
        without("\"pinned\"", "null"), without("{\"manifest\":\"m\",\"version\":2}", "[]")}) {
    EXPECT_THAT(ParseRecord(line), StatusIs(Code::kDataLoss, HasSubstr("record"))) << line;
  }
}

}  // namespace
}  // namespace fl::registry
