#include "obs/log.h"

#include <gtest/gtest.h>

namespace fl::obs {
namespace {

TEST(Log, JsonKeepsTypesAndOrder) {
  EXPECT_EQ(
      FormatLogLine(LogFormat::kJson, Level::kInfo, "round closed",
                    {{"round", base::RoundNumber(3)},
                     {"client", base::ClientName("a")},
                     {"late", true},
                     {"loss", 0.5}}),
      R"({"level":"info","msg":"round closed","round":3,"client":"a","late":true,"loss":0.5})");
}

TEST(Log, TextQuotesWhatNeedsIt) {
  EXPECT_EQ(FormatLogLine(LogFormat::kText, Level::kWarning, "refused",
                          {{"client", "a"}, {"why", "no \"x\""}, {"empty", ""}, {"n", 2}}),
            R"(warning refused client=a why="no \"x\"" empty="" n=2)");
}

TEST(Log, BytesThatAreNotUtf8DoNotThrow) {
  const std::string line =
      FormatLogLine(LogFormat::kJson, Level::kInfo, "x", {{"name", "\xff\xfe"}});
  EXPECT_NE(line.find("\"name\""), std::string::npos);
}

TEST(Log, LevelsByName) {
  EXPECT_EQ(*ParseLevel("warning"), Level::kWarning);
  EXPECT_EQ(ParseLevel("loud").status().code(), base::Code::kInvalidArgument);
}

}  // namespace
}  // namespace fl::obs
