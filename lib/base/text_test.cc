#include "base/text.h"

#include <gtest/gtest.h>

namespace fl::base {
namespace {

TEST(Text, CountsAgreeWithTheirNouns) {
  EXPECT_EQ(Count(0, "round"), "0 rounds");
  EXPECT_EQ(Count(1, "round"), "1 round");
  EXPECT_EQ(Count(2, "entry", "entries"), "2 entries");
  EXPECT_EQ(Count(1, "entry", "entries"), "1 entry");
}

TEST(Text, AllOfOneIsTheOnlyOne) {
  EXPECT_EQ(AllOf(1, "round"), "the only round");
  EXPECT_EQ(AllOf(3, "round"), "all 3 rounds");
  EXPECT_EQ(AllOf(2, "entry", "entries"), "all 2 entries");
}

}  // namespace
}  // namespace fl::base
