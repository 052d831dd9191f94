#include "base/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/testing/simulated_clock.h"
#include "base/testing/status_matchers.h"

namespace fl::base {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Time At(std::chrono::sys_days day, Duration after) { return Time(day) + after; }

TEST(Time, IsWrittenAsRfc3339InUtc) {
  using std::chrono::November, std::chrono::year;
  const std::chrono::sys_days day(year(2026) / November / 30);
  EXPECT_EQ(FormatTime(At(day, 20h + 54min + 58s + 123ms)), "2026-11-30T20:54:58.123Z");
  EXPECT_EQ(FormatTime(At(day, 999'999ns)), "2026-11-30T00:00:00.000Z");
  EXPECT_EQ(FormatTime(Time()), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatTime(Time(-1ns)), "1969-12-31T23:59:59.999Z");
}

TEST(Time, IsReadBack) {
  const Time time(std::chrono::milliseconds(1'796'072'098'123));
  EXPECT_THAT(ParseTime(FormatTime(time)), IsOkAndHolds(time));
  EXPECT_THAT(ParseTime("1970-01-01T00:00:01Z"), IsOkAndHolds(Time(1s)));
  EXPECT_THAT(ParseTime("1970-01-01T00:00:01+00:00"), IsOkAndHolds(Time(1s)));
  EXPECT_THAT(ParseTime("1970-01-01T00:00:00.5Z"), IsOkAndHolds(Time(500ms)));
  EXPECT_THAT(ParseTime("1970-01-01T00:00:00.1234567899Z"), IsOkAndHolds(Time(123'456'789ns)));
  EXPECT_THAT(ParseTime("1969-12-31T23:59:59Z"), IsOkAndHolds(Time(-1s)));
  EXPECT_THAT(ParseTime("2000-02-29T00:00:00Z"), IsOkAndHolds(Time(951'782'400s)));
  EXPECT_THAT(ParseTime("2016-12-31T23:59:60Z"), IsOkAndHolds(Time(1'483'228'800s)));
  EXPECT_THAT(ParseTime("1678-01-01T00:00:00Z"), IsOk());
  EXPECT_THAT(ParseTime("2261-12-31T23:59:59.999999999Z"), IsOk());
}

TEST(Time, RefusesWhatIsNone) {
  for (const std::string_view bad : {"",
                                     "now",
                                     "2026-11-30",
                                     "2026-11-30 20:54:58Z",
                                     "2026-11-30T20:54:58",
                                     "2026-11-30T20:54:58z",
                                     "2026-11-30T20:54:58+01:00",
                                     "2026-11-30T20:54:58.Z",
                                     "2026-11-30T20:54:58Z ",
                                     " 2026-11-30T20:54:58Z",
                                     "2026-11-30T20:54:58ZZ",
                                     "2026-13-30T20:54:58Z",
                                     "2026-02-30T20:54:58Z",
                                     "2026-00-10T20:54:58Z",
                                     "2026-11-30T24:00:00Z",
                                     "2026-11-30T20:60:00Z",
                                     "2026-11-30T20:54:61Z",
                                     "2026-11-30T-1:54:58Z",
                                     "+026-11-30T20:54:58Z",
                                     "2026-11- 1T20:54:58Z",
                                     "1677-12-31T00:00:00Z",
                                     "2262-01-01T00:00:00Z",
                                     "9999-12-31T23:59:59Z",
                                     "2026-11-30T20:54:5",
                                     "2026-11-30T20:54:58.5"}) {
    EXPECT_THAT(ParseTime(bad), StatusIs(Code::kInvalidArgument, HasSubstr(bad))) << bad;
  }
  EXPECT_THAT(ParseTime(std::string_view("2026-11-30T20:54:58Z\0", 21)),
              StatusIs(Code::kInvalidArgument));
}

TEST(Duration, IsWrittenInTheTwoUnitsThatMatter) {
  EXPECT_EQ(FormatDuration(0s), "0ms");
  EXPECT_EQ(FormatDuration(350ms), "350ms");
  EXPECT_EQ(FormatDuration(999ms), "999ms");
  EXPECT_EQ(FormatDuration(999'600us), "1.0s");
  EXPECT_EQ(FormatDuration(1234ms), "1.2s");
  EXPECT_EQ(FormatDuration(59'940ms), "59.9s");
  EXPECT_EQ(FormatDuration(59'960ms), "1m0s");
  EXPECT_EQ(FormatDuration(250s), "4m10s");
  EXPECT_EQ(FormatDuration(3'599'700ms), "1h0m");
  EXPECT_EQ(FormatDuration(3h + 5min + 20s), "3h5m");
  EXPECT_EQ(FormatDuration(50h), "50h0m");
  EXPECT_EQ(FormatDuration(-1500ms), "-1.5s");
  EXPECT_EQ(FormatDuration(Duration::max()), "2562047h47m");
}

TEST(Clock, TheMachinesGoesForward) {
  Clock& clock = Clock::System();
  const Instant before = clock.Monotonic();
  EXPECT_GE(clock.Monotonic(), before);
  EXPECT_GT(clock.Now(), Time(1'700'000'000s));
}

TEST(SimulatedClock, MovesOnlyWhenTold) {
  SimulatedClock clock(Time(100s));
  const Instant start = clock.Monotonic();
  EXPECT_EQ(clock.Now(), Time(100s));
  EXPECT_EQ(clock.Now(), Time(100s));
  clock.Advance(1500ms);
  EXPECT_EQ(clock.Now(), Time(101'500ms));
  EXPECT_EQ(clock.Monotonic() - start, 1500ms);
}

TEST(SimulatedClock, LosesNoStepOfTwoThreads) {
  SimulatedClock clock(Time(0s));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&clock] {
        for (int step = 0; step < 1000; ++step) clock.Advance(1ms);
      });
    }
  }
  EXPECT_EQ(clock.Now(), Time(4s));
}

}  // namespace
}  // namespace fl::base
