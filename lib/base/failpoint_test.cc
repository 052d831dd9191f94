#include "base/failpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"

namespace fl::base {
namespace {

using ::testing::HasSubstr;

class FailpointTest : public ::testing::Test {
 protected:
  ~FailpointTest() override { ArmFailpoints(""); }
};
using FailpointDeathTest = FailpointTest;

TEST_F(FailpointTest, PassesUnlessArmed) {
  EXPECT_THAT(Failpoint("a"), IsOk());
  ArmFailpoints("a=error");
  EXPECT_THAT(Failpoint("b"), IsOk());
  EXPECT_THAT(Failpoint("a"), StatusIs(Code::kUnavailable, HasSubstr("failpoint a")));
  EXPECT_THAT(Failpoint("a"), IsOk());  // once
  ArmFailpoints("");
  EXPECT_THAT(Failpoint("a"), IsOk());
}

TEST_F(FailpointTest, FailsAtTheOccurrenceAskedFor) {
  ArmFailpoints("a#3=nospace;b=error");
  EXPECT_THAT(Failpoint("a"), IsOk());
  EXPECT_THAT(Failpoint("a"), IsOk());
  EXPECT_THAT(Failpoint("b"), StatusIs(Code::kUnavailable));
  EXPECT_THAT(Failpoint("a"), StatusIs(Code::kResourceExhausted, HasSubstr("failpoint a")));
  EXPECT_THAT(Failpoint("a"), IsOk());
}

TEST_F(FailpointTest, WaitsUntilAFileExists) {
  const TemporaryDirectory folder;
  const Path go = folder / "go";
  ArmFailpoints("a=wait:" + go.string());
  std::jthread opener([&go] { EXPECT_THAT(WriteFileAtomically(go, ""), IsOk()); });
  EXPECT_THAT(Failpoint("a"), IsOk());
  EXPECT_TRUE(std::filesystem::exists(go));
}

TEST_F(FailpointDeathTest, KillsAsKillMinusNineDoes) {
  ArmFailpoints("a=kill");
  EXPECT_EXIT(static_cast<void>(Failpoint("a")), ::testing::KilledBySignal(SIGKILL), "");
}

TEST_F(FailpointDeathTest, ATextThatIsNoneEndsTheProcess) {
  for (const char* bad : {"a", "a=", "a=explode", "a#0=kill", "a#x=kill", "a#=kill", "a#-1=kill",
                          "a#1x=kill", "a=kill;b"}) {
    EXPECT_DEATH(ArmFailpoints(bad), "check failed") << bad;
  }
}

}  // namespace
}  // namespace fl::base
