#include "strategy/internal/integer_mean.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"

namespace fl::strategy::internal {
namespace {

using tensor::DType;
__extension__ using Int128 = __int128;

/// The mean of one coordinate.
template <typename T>
T Mean(DType dtype, const std::vector<double>& weights, const std::vector<T>& values) {
  std::vector<const uint8_t*> sources;
  for (const T& value : values) sources.push_back(reinterpret_cast<const uint8_t*>(&value));
  T result{};
  IntegerMean(weights).Compute(dtype, sources.data(), 1, reinterpret_cast<uint8_t*>(&result));
  return result;
}

/// floor(sum / total + 1/2), half to even, where everything fits 128 bits.
Int128 Reference(Int128 sum, Int128 total) {
  Int128 floor = sum / total;
  if (floor * total > sum) --floor;
  const Int128 twice = 2 * (sum - floor * total);
  return floor + (twice > total || (twice == total && floor % 2 != 0) ? 1 : 0);
}

TEST(IntegerMean, HalvesGoToEven) {
  const std::vector<double> equal = {1, 1};
  EXPECT_EQ(Mean<int32_t>(DType::kI32, equal, {0, 1}), 0);
  EXPECT_EQ(Mean<int32_t>(DType::kI32, equal, {1, 2}), 2);
  EXPECT_EQ(Mean<int32_t>(DType::kI32, equal, {0, -1}), 0);
  EXPECT_EQ(Mean<int32_t>(DType::kI32, equal, {-1, -2}), -2);
  EXPECT_EQ(Mean<int32_t>(DType::kI32, equal, {-3, -2}), -2);
  EXPECT_EQ(Mean<int32_t>(DType::kI32, {1, 2}, {0, 1}), 1);
  EXPECT_EQ(Mean<uint8_t>(DType::kU8, {1, 1, 2}, {255, 254, 255}), 255);
  // Equal weights that are no whole numbers are as equal.
  EXPECT_EQ(Mean<int32_t>(DType::kI32, {0.1, 0.1}, {1, 2}), 2);
  EXPECT_EQ(Mean<int32_t>(DType::kI32, {0.1, 0.1}, {0, 1}), 0);
  // As F64, 0.3 is less than three times 0.1: just below the half.
  EXPECT_EQ(Mean<int32_t>(DType::kI32, {0.1, 0.3, 0.2}, {0, 1, 0}), 0);
}

TEST(IntegerMean, BooleansAreAMajorityByWeight) {
  EXPECT_EQ(Mean<uint8_t>(DType::kBool, {1, 1}, {0, 1}), 0);
  EXPECT_EQ(Mean<uint8_t>(DType::kBool, {1, 2}, {0, 1}), 1);
  EXPECT_EQ(Mean<uint8_t>(DType::kBool, {2, 1}, {0, 1}), 0);
  EXPECT_EQ(Mean<uint8_t>(DType::kBool, {1}, {7}), 1);  // any byte but 0 is true
}

TEST(IntegerMean, TheEndsOfEachTypeAreKept) {
  const std::vector<double> large = {0x1p53, 0x1.fffffffffffffp52, 3};
  const std::vector<double> wide = {0x1p53, 0x1p-53, 0x1.fffffffffffffp3};
  for (const auto& weights : {large, wide}) {
    constexpr auto kMax64 = std::numeric_limits<int64_t>::max();
    constexpr auto kMin64 = std::numeric_limits<int64_t>::min();
    constexpr auto kMaxU64 = std::numeric_limits<uint64_t>::max();
    EXPECT_EQ(Mean<int64_t>(DType::kI64, weights, {kMax64, kMax64, kMax64}), kMax64);
    EXPECT_EQ(Mean<int64_t>(DType::kI64, weights, {kMin64, kMin64, kMin64}), kMin64);
    EXPECT_EQ(Mean<uint64_t>(DType::kU64, weights, {kMaxU64, kMaxU64, kMaxU64}), kMaxU64);
    EXPECT_EQ(Mean<int8_t>(DType::kI8, weights, {-128, -128, -128}), -128);
    EXPECT_EQ(Mean<uint16_t>(DType::kU16, weights, {65535, 65535, 65535}), 65535);
  }
  // F64 would lose these: 2⁶³ − 1 and 2⁶³ − 3.
  EXPECT_EQ(Mean<int64_t>(DType::kI64, {1, 1}, {INT64_MAX, INT64_MAX - 2}), INT64_MAX - 1);
}

// Against 128-bit arithmetic, with weights whose sum fits 62 bits and with weights whose sum does
// not, and values for which 128 bits are enough in both cases.
TEST(IntegerMean, AgreesWithExactArithmetic) {
  base::SeededRandom random({31});
  for (int run = 0; run < 3000; ++run) {
    const size_t clients = 1 + random.Below(8);
    const int fraction_bits = static_cast<int>(random.Below(3)) * 16;  // 0, 16, 32
    std::vector<double> weights;
    std::vector<Int128> exact;
    std::vector<int32_t> values;
    Int128 sum = 0;
    Int128 total = 0;
    for (size_t k = 0; k < clients; ++k) {
      const auto significand = static_cast<int64_t>(random.Below(uint64_t{1} << 53)) | 1;
      // Some weights have a fraction, others are whole: together they span up to 85 bits.
      const bool fraction = random.Below(2) == 0;
      weights.push_back(
          std::ldexp(static_cast<double>(significand), fraction ? -fraction_bits : 0));
      exact.push_back(Int128{significand} << (fraction ? 0 : fraction_bits));
      // Close together, so that halves come up.
      values.push_back(static_cast<int32_t>(random.Below(5)) - 2 + (run % 2) * 2'000'000'000);
      sum += exact.back() * values.back();
      total += exact.back();
    }
    if (run % 3 == 0) {  // equal weights make exact halves
      std::fill(weights.begin(), weights.end(), weights[0]);
      sum = 0;
      for (const int32_t value : values) sum += value;
      total = static_cast<int64_t>(clients);
    }
    ASSERT_EQ(Mean<int32_t>(DType::kI32, weights, values),
              static_cast<int32_t>(Reference(sum, total)))
        << run;
  }
}

TEST(IntegerMean, WideHalvesGoToEvenToo) {
  // 2⁵³ and 2⁵³ against 2⁻⁵³ twice: the sum spans 107 bits.
  const std::vector<double> weights = {0x1p53, 0x1p53, 0x1p-53, 0x1p-53};
  EXPECT_EQ(Mean<int32_t>(DType::kI32, weights, {1, 2, 1, 2}), 2);
  EXPECT_EQ(Mean<int32_t>(DType::kI32, weights, {0, 1, 0, 1}), 0);
  EXPECT_EQ(Mean<int32_t>(DType::kI32, weights, {0, 1, 1, 1}), 1);  // a hair above the half
  EXPECT_EQ(Mean<int32_t>(DType::kI32, weights, {1, 2, 1, 1}), 1);  // a hair below
  EXPECT_EQ(Mean<int64_t>(DType::kI64, weights, {-1, -2, -1, -2}), -2);
  EXPECT_EQ(Mean<int64_t>(DType::kI64, weights, {-1, -2, -1, -1}), -1);
}

}  // namespace
}  // namespace fl::strategy::internal
