#include "strategy/internal/float_mean.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace fl::strategy::internal {
namespace {

using tensor::DType;
constexpr double kLargest = std::numeric_limits<double>::max();

// The processors of a federation's servers differ; the model must not.
TEST(FloatMean, EveryInstructionSetGivesTheSameBits) {
  base::SeededRandom random({41});
  for (int run = 0; run < 60; ++run) {
    const auto dtype = static_cast<DType>(static_cast<int>(DType::kF8E4M3) + run % 6);
    const size_t size = tensor::ElementSize(dtype);
    const size_t clients = 1 + random.Below(11);
    const size_t count = 1 + random.Below(kBlock);
    std::vector<double> weights;
    std::vector<std::vector<uint8_t>> data;
    std::vector<const uint8_t*> sources;
    for (size_t k = 0; k < clients; ++k) {
      weights.push_back(1 + random.Unit() * 1000);
      std::vector<double> values(count);
      for (double& value : values) value = random.Normal();
      const size_t misalignment = random.Below(8);
      data.emplace_back(count * size + misalignment);
      tensor::EncodeFromDouble(dtype, values.data(), count, data.back().data() + misalignment);
      sources.push_back(data.back().data() + misalignment);
    }
    std::vector<double> expected(count);
    ASSERT_TRUE(FloatMean(weights, base::InstructionSet::kBaseline)
                    .Compute(dtype, sources.data(), count, expected.data()));
    // The plainest loop.
    for (size_t i = 0; i < count; i += 97) {
      double sum = 0;
      double total = 0;
      bool equal = true;
      for (const double weight : weights) equal = equal && weight == weights[0];
      for (size_t k = 0; k < clients; ++k) {
        double value = 0;
        tensor::DecodeToDouble(dtype, sources[k] + i * size, 1, &value);
        const double weight = equal ? 1 : weights[k];
        sum += weight * value;
        total += weight;
      }
      ASSERT_EQ(expected[i], sum / total);
    }
    for (int set = 1; set <= static_cast<int>(base::BestInstructionSet()); ++set) {
      std::vector<double> means(count);
      ASSERT_TRUE(FloatMean(weights, static_cast<base::InstructionSet>(set))
                      .Compute(dtype, sources.data(), count, means.data()));
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(std::bit_cast<uint64_t>(means[i]), std::bit_cast<uint64_t>(expected[i])) << i;
      }
    }
  }
}

double MeanOf(const std::vector<double>& weights, const std::vector<double>& values, bool& finite) {
  std::vector<const uint8_t*> sources;
  for (const double& value : values) sources.push_back(reinterpret_cast<const uint8_t*>(&value));
  double mean = 0;
  finite = FloatMean(weights).Compute(DType::kF64, sources.data(), 1, &mean);
  return mean;
}

TEST(FloatMean, DoublesThatWouldOverflowDoNot) {
  bool finite = false;
  EXPECT_DOUBLE_EQ(MeanOf({5, 7, 9}, {kLargest, kLargest, kLargest}, finite), kLargest);
  EXPECT_TRUE(finite);
  EXPECT_DOUBLE_EQ(MeanOf({1, 3}, {-kLargest, -kLargest}, finite), -kLargest);
  EXPECT_TRUE(finite);
  EXPECT_DOUBLE_EQ(MeanOf({1, 3}, {kLargest, -kLargest}, finite), -kLargest / 2);
  EXPECT_TRUE(finite);
  // Plus and minus infinity in the plain sum.
  EXPECT_EQ(MeanOf({0x1p53, 0x1p53, 1}, {kLargest, -kLargest, 0}, finite), 0);
  EXPECT_TRUE(finite);
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    MeanOf({1, 1, 2}, {1, bad, kLargest}, finite);
    EXPECT_FALSE(finite);
  }
}

TEST(FloatMean, SignsOfZeroAndSubnormalsAreKept) {
  bool finite = false;
  EXPECT_TRUE(std::signbit(MeanOf({1, 2}, {-0.0, -0.0}, finite)));
  EXPECT_FALSE(std::signbit(MeanOf({1, 2}, {-0.0, 0.0}, finite)));
  EXPECT_EQ(MeanOf({10, 10}, {0x1p-1074, 0x1p-1074}, finite), 0x1p-1074);
}

}  // namespace
}  // namespace fl::strategy::internal
