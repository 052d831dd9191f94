#include "cli/duration.h"

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace fl::cli {
namespace {

using base::IsOkAndHolds;
using base::StatusIs;
using namespace std::chrono_literals;

TEST(Duration, Reads) {
  EXPECT_THAT(ParseDuration("60s"), IsOkAndHolds(base::Duration(60s)));
  EXPECT_THAT(ParseDuration("1h30m"), IsOkAndHolds(base::Duration(90min)));
  EXPECT_THAT(ParseDuration("250ms"), IsOkAndHolds(base::Duration(250ms)));
  EXPECT_THAT(ParseDuration("1.5s"), IsOkAndHolds(base::Duration(1500ms)));
  EXPECT_THAT(ParseDuration("7"), IsOkAndHolds(base::Duration(7s)));
  EXPECT_THAT(ParseDuration("0"), IsOkAndHolds(base::Duration(0s)));
}

TEST(Duration, Refuses) {
  for (const char* text : {"", "-1s", "s", "1x", "1h30", "nan", "inf", "1e3s", "1 s", "1000000d",
                           "999999999999999999999999"}) {
    EXPECT_THAT(ParseDuration(text), StatusIs(base::Code::kInvalidArgument)) << text;
  }
}

}  // namespace
}  // namespace fl::cli
