#include "base/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace fl::base {
namespace {

using ::testing::ElementsAre;

/// Gives the numbers it was made with, then fails.
class Scripted final : public RandomSource {
 public:
  explicit Scripted(std::vector<uint64_t> words) : words_(std::move(words)) {}
  void Fill(std::span<uint8_t> out) override {
    ASSERT_LT(used_, words_.size());
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<uint8_t>(words_[used_] >> (8 * i));
    }
    ++used_;
  }
  size_t used() const { return used_; }

 private:
  std::vector<uint64_t> words_;
  size_t used_ = 0;
};

// The expected numbers come from a separate program that was first held to the published vectors of
// xoshiro256++ (state {1,2,3,4}: 41943041, 58720359, 3588806011781223, …) and splitmix64. No number
// here may ever change: models that people keep were made from these sequences.
TEST(SeededRandom, SequenceIsFixedForAllTime) {
  SeededRandom none({});
  EXPECT_EQ(none.Next(), 0x53175d61490b23dfU);
  EXPECT_EQ(none.Next(), 0x61da6f3dc380d507U);
  EXPECT_EQ(none.Next(), 0x5c0fdf91ec9a7bfcU);
  EXPECT_EQ(none.Next(), 0x02eebf8c3bbe5e1aU);
  SeededRandom zero({0});
  EXPECT_EQ(zero.Next(), 0x84f09bf307c1073aU);
  EXPECT_EQ(zero.Next(), 0xc82ffb597ceee51bU);
  SeededRandom three({7, 3, 11});
  EXPECT_EQ(three.Next(), 0xf81a5e29e2733461U);
  EXPECT_EQ(three.Next(), 0xc9d5d1806a353efbU);
  EXPECT_EQ(three.Uint64(), 0xaa694018b1899d3bU);  // the same stream by way of bytes
  EXPECT_EQ(three.Next(), 0xfce02bd885570d32U);
}

TEST(SeededRandom, BytesAreTheWordsLittleEndian) {
  SeededRandom random({});
  std::vector<uint8_t> bytes(11);
  random.Fill(bytes);
  EXPECT_THAT(bytes, ElementsAre(0xdf, 0x23, 0x0b, 0x49, 0x61, 0x5d, 0x17, 0x53, 0x07, 0xd5, 0x80));
}

TEST(SeededRandom, EachListOfWordsIsAStreamOfItsOwn) {
  std::vector<uint64_t> first;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (uint64_t round = 0; round < 20; ++round) {
      first.push_back(SeededRandom({seed, round}).Next());
      first.push_back(SeededRandom({seed, round, 0}).Next());
    }
  }
  std::sort(first.begin(), first.end());
  EXPECT_EQ(std::adjacent_find(first.begin(), first.end()), first.end());
}

TEST(SeededRandom, NormalsAreFixedForAllTime) {
  SeededRandom random({1});
  const double expected[] = {-0.5824263034946316, -1.816790708615011,  -0.36246082267720436,
                             -1.4597294235592835, 0.47504283059831204, -0.640171426889845};
  for (const double value : expected) EXPECT_DOUBLE_EQ(random.Normal(), value);
}

TEST(SeededRandom, NormalsAreNormal) {
  SeededRandom random({42});
  constexpr int kCount = 200'000;
  double sum = 0, squares = 0, cubes = 0, fourths = 0;
  int within_one = 0, past_three = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.Normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    cubes += x * x * x;
    fourths += x * x * x * x;
    within_one += std::abs(x) < 1 ? 1 : 0;
    past_three += std::abs(x) > 3 ? 1 : 0;
  }
  // Six standard errors each.
  EXPECT_NEAR(sum / kCount, 0, 6 * std::sqrt(1.0 / kCount));
  EXPECT_NEAR(squares / kCount, 1, 6 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(cubes / kCount, 0, 6 * std::sqrt(15.0 / kCount));
  EXPECT_NEAR(fourths / kCount, 3, 6 * std::sqrt(96.0 / kCount));
  EXPECT_NEAR(within_one / double{kCount}, 0.682689, 6 * std::sqrt(0.2166 / kCount));
  EXPECT_NEAR(past_three / double{kCount}, 0.0026998, 6 * std::sqrt(0.0027 / kCount));
}

TEST(SeededRandom, ShuffleIsFixedAndAPermutation) {
  SeededRandom random({5});
  std::vector<int> values(10);
  std::iota(values.begin(), values.end(), 0);
  random.Shuffle(values);
  EXPECT_THAT(values, ElementsAre(7, 6, 4, 0, 9, 8, 5, 1, 2, 3));
  std::vector<int> none;
  random.Shuffle(none);
  EXPECT_TRUE(none.empty());
}

TEST(RandomSource, BelowDrawsAgainWhereTheLastMultipleEnds) {
  // 2^64 = 6148914691236517205 * 3 + 1: only the largest word has no place.
  Scripted three({UINT64_MAX, UINT64_MAX, UINT64_MAX - 1});
  EXPECT_EQ(three.Below(3), 2U);
  EXPECT_EQ(three.used(), 3U);
  // A power of two has no remainder: nothing is drawn again.
  Scripted power({UINT64_MAX});
  EXPECT_EQ(power.Below(uint64_t{1} << 63), (uint64_t{1} << 63) - 1);
  // Of a bound just past half, nearly every second word is drawn again.
  const uint64_t past_half = (uint64_t{1} << 63) + 1;
  Scripted half({past_half, past_half - 1});
  EXPECT_EQ(half.Below(past_half), past_half - 1);
  EXPECT_EQ(half.used(), 2U);
  Scripted one({12345});
  EXPECT_EQ(one.Below(1), 0U);
  Scripted all({UINT64_MAX, UINT64_MAX - 1});
  EXPECT_EQ(all.Below(UINT64_MAX), UINT64_MAX - 1);
}

TEST(RandomSourceDeathTest, BelowNothingIsABrokenInvariant) {
  SeededRandom random({1});
  EXPECT_DEATH(random.Below(0), "check failed");
}

TEST(RandomSource, BelowIsUniform) {
  SeededRandom random({9});
  constexpr int kBound = 7, kCount = 70'000;
  std::vector<int> counts(kBound);
  for (int i = 0; i < kCount; ++i) ++counts[random.Below(kBound)];
  double chi_square = 0;
  for (const int count : counts) {
    const double expected = double{kCount} / kBound;
    chi_square += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi_square, 22.46);  // p = 0.001 with 6 degrees of freedom
}

TEST(RandomSource, UnitNeverReachesOne) {
  Scripted edges({0, UINT64_MAX, uint64_t{1} << 63});
  EXPECT_EQ(edges.Unit(), 0.0);
  EXPECT_EQ(edges.Unit(), 1 - 0x1.0p-53);
  EXPECT_EQ(edges.Unit(), 0.5);
}

TEST(RandomSource, SecureFillsAllOfLargeSpans) {
  // Past the step in which OpenSSL is asked. A run of 16 zeros by chance: below 2^-107.
  std::vector<uint8_t> bytes((size_t{2} << 20) + 17);
  RandomSource::Secure().Fill(bytes);
  for (const size_t begin : {size_t{0}, size_t{1} << 20, (size_t{2} << 20) + 1}) {
    const auto part = std::span(bytes).subspan(begin, 16);
    EXPECT_FALSE(std::all_of(part.begin(), part.end(), [](uint8_t b) { return b == 0; })) << begin;
  }
  EXPECT_NE(RandomSource::Secure().Uint64(), RandomSource::Secure().Uint64());
  RandomSource::Secure().Fill({});
}

}  // namespace
}  // namespace fl::base
