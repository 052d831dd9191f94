#include "base/backoff.h"

#include <gtest/gtest.h>

namespace fl::base {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, DoublesUpToTheCapWithJitterInTheUpperHalf) {
  SeededRandom random({3});
  for (int trial = 0; trial < 100; ++trial) {
    Backoff backoff(100ms, 1s, random);
    for (const Duration whole : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
      const Duration delay = backoff.Next();
      EXPECT_GE(delay, whole / 2);
      EXPECT_LT(delay, whole);
    }
    EXPECT_EQ(backoff.failures(), 6);
  }
}

TEST(Backoff, JitterSpreadsClientsOut) {
  SeededRandom random({4});
  Duration least = Duration::max(), most = Duration::min();
  for (int client = 0; client < 1000; ++client) {
    const Duration delay = Backoff(1s, 1min, random).Next();
    least = std::min(least, delay);
    most = std::max(most, delay);
  }
  EXPECT_LT(least, 510ms);
  EXPECT_GT(most, 990ms);
}

TEST(Backoff, StartsSmallAgainAfterASuccess) {
  SeededRandom random({5});
  Backoff backoff(100ms, 1h, random);
  for (int i = 0; i < 10; ++i) static_cast<void>(backoff.Next());
  EXPECT_GE(backoff.Next(), 10s);
  backoff.Reset();
  EXPECT_EQ(backoff.failures(), 0);
  EXPECT_LT(backoff.Next(), 100ms);
}

TEST(Backoff, StaysAtTheCapHoweverManyFailures) {
  SeededRandom random({6});
  Backoff largest(1s, Duration::max(), random);
  for (int i = 0; i < 200; ++i) EXPECT_GE(largest.Next(), 500ms) << i;
  EXPECT_GE(largest.Next(), Duration::max() / 2);
  Backoff cap_below_initial(10s, 1s, random);
  EXPECT_LT(cap_below_initial.Next(), 1s);
}

}  // namespace
}  // namespace fl::base
