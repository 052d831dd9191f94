#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.h"
#include "tensor/internal/kernels.h"

namespace fl::tensor {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr DType kFloating[] = {DType::kF8E4M3, DType::kF8E5M2, DType::kF16,
                               DType::kBF16,   DType::kF32,    DType::kF64};

double DecodeOne(DType dtype, uint64_t bits) {
  double value = 0;
  DecodeToDouble(dtype, reinterpret_cast<const uint8_t*>(&bits), 1, &value);
  return value;
}

uint64_t EncodeOne(DType dtype, double value) {
  uint64_t bits = 0;
  EncodeFromDouble(dtype, &value, 1, reinterpret_cast<uint8_t*>(&bits));
  return bits;
}

TEST(DType, NamesAreThoseOfTheFormatAndReadBack) {
  for (const auto& [dtype, name, size] :
       std::initializer_list<std::tuple<DType, std::string_view, size_t>>{
           {DType::kBool, "BOOL", 1},
           {DType::kU64, "U64", 8},
           {DType::kI16, "I16", 2},
           {DType::kF8E4M3, "F8_E4M3", 1},
           {DType::kBF16, "BF16", 2},
           {DType::kF64, "F64", 8}}) {
    EXPECT_EQ(Name(dtype), name);
    EXPECT_EQ(DTypeFromName(name), dtype);
    EXPECT_EQ(ElementSize(dtype), size);
  }
  EXPECT_EQ(DTypeFromName("f32"), std::nullopt);
  EXPECT_EQ(DTypeFromName("C64"), std::nullopt);
  EXPECT_FALSE(IsFloating(DType::kI64));
  EXPECT_TRUE(IsFloating(DType::kBF16));
}

TEST(DType, KnownValues) {
  EXPECT_EQ(EncodeF16(60000), 0x7b53);
  EXPECT_EQ(EncodeF16(45000), 0x797e);  // 44992, the nearest
  EXPECT_EQ(EncodeF16(65519.999), 0x7bff);
  EXPECT_EQ(EncodeF16(65520), 0x7c00);  // the tie past the largest: infinity, as IEEE 754 says
  EXPECT_EQ(EncodeF16(0x1p-25), 0);     // a tie with 0, which is even
  EXPECT_EQ(EncodeF16(0x1.8p-25), 1);
  EXPECT_EQ(EncodeF16(-0.0), 0x8000);
  EXPECT_EQ(EncodeBF16(1.0), 0x3f80);
  EXPECT_EQ(EncodeBF16(3.4e38), 0x7f80);
  EXPECT_EQ(EncodeOne(DType::kF8E4M3, 448), 0x7e);
  EXPECT_EQ(EncodeOne(DType::kF8E4M3, 464), 0x7e);
  EXPECT_EQ(EncodeOne(DType::kF8E4M3, 464.1), 0x7f);
  EXPECT_EQ(EncodeOne(DType::kF8E5M2, -57344), 0xfb);
  EXPECT_EQ(DecodeOne(DType::kF8E4M3, 0x01), 0x1p-9);
  EXPECT_EQ(DecodeOne(DType::kF8E5M2, 0x7c), kInfinity);
  EXPECT_TRUE(std::isnan(DecodeOne(DType::kF8E4M3, 0xff)));
}

TEST(DType, HalvesAreRoundedOnceFromDouble) {
  // Through F32 each of these would land on the tie and go to the even neighbour.
  EXPECT_EQ(EncodeF16(1 + 0x1p-11 + 0x1p-40), 0x3c01);
  EXPECT_EQ(EncodeF16(1 + 0x1p-11), 0x3c00);
  EXPECT_EQ(EncodeF16(1 + 0x3p-11 - 0x1p-40), 0x3c01);
  EXPECT_EQ(EncodeBF16(1 + 0x1p-8 + 0x1p-40), 0x3f81);
  EXPECT_EQ(EncodeBF16(1 + 0x1p-8), 0x3f80);
}

// Every value of a small type comes back, and around each midpoint between neighbours the nearest
// is chosen, the even one at the midpoint.
TEST(DType, EveryValueOfTheSmallTypesRoundTripsAndMidpointsGoToEven) {
  for (const auto& [dtype, infinity] :
       std::initializer_list<std::pair<DType, uint64_t>>{{DType::kF16, 0x7c00},
                                                         {DType::kBF16, 0x7f80},
                                                         {DType::kF8E5M2, 0x7c},
                                                         {DType::kF8E4M3, 0x7f}}) {
    const uint64_t sign = infinity < 256 ? 0x80 : 0x8000;
    for (uint64_t bits = 0; bits < infinity; ++bits) {
      const double value = DecodeOne(dtype, bits);
      ASSERT_EQ(EncodeOne(dtype, value), bits) << dtype << " " << bits;
      ASSERT_EQ(EncodeOne(dtype, -value), bits | sign) << dtype << " " << bits;
      if (bits + 1 == infinity) continue;
      const double next = DecodeOne(dtype, bits + 1);
      ASSERT_LT(value, next);
      const double middle = value + (next - value) / 2;
      ASSERT_EQ(EncodeOne(dtype, middle), bits + (bits & 1)) << dtype << " " << bits;
      ASSERT_EQ(EncodeOne(dtype, std::nextafter(middle, 0)), bits) << dtype << " " << bits;
      ASSERT_EQ(EncodeOne(dtype, std::nextafter(middle, kInfinity)), bits + 1) << dtype;
    }
  }
}

TEST(DType, EncodingReportsWhatIsNotFinite) {
  const std::vector<double> values = {1, 65504, 65520, -1e300, kInfinity, std::nan("")};
  std::vector<uint8_t> bytes(values.size() * 8);
  EXPECT_EQ(EncodeFromDouble(DType::kF16, values.data(), values.size(), bytes.data()), 4u);
  EXPECT_EQ(EncodeFromDouble(DType::kF32, values.data(), values.size(), bytes.data()), 3u);
  EXPECT_EQ(EncodeFromDouble(DType::kF64, values.data(), values.size(), bytes.data()), 2u);
  EXPECT_EQ(EncodeFromDouble(DType::kF8E4M3, values.data(), values.size(), bytes.data()), 5u);
}

// Counting and finding agree with a plain loop, for every dtype, length and misalignment.
TEST(DType, NonFiniteValuesAreCountedAtAnyLengthAndAlignment) {
  base::SeededRandom random({1});
  for (const DType dtype : kFloating) {
    const size_t size = ElementSize(dtype);
    for (size_t count = 0; count < 300; count += 1 + count / 8) {
      const size_t offset = random.Below(9);
      std::vector<uint8_t> memory(offset + count * size);
      uint8_t* data = memory.data() + offset;
      size_t expected = 0;
      std::optional<size_t> first;
      for (size_t i = 0; i < count; ++i) {
        const bool bad = random.Below(7) == 0;
        double value = random.Unit() - 0.5;
        if (bad) value = random.Below(2) == 0 ? std::nan("") : -kInfinity;
        EncodeFromDouble(dtype, &value, 1, data + i * size);
        expected += bad ? 1 : 0;
        if (bad && !first) first = i;
      }
      EXPECT_EQ(CountNonFinite(dtype, {data, count * size}), expected) << dtype << " " << count;
      EXPECT_EQ(FirstNonFinite(dtype, {data, count * size}), first) << dtype << " " << count;
    }
  }
  const std::vector<uint8_t> ones(800, 0xff);
  EXPECT_EQ(CountNonFinite(DType::kI32, ones), 0u);
}

TEST(DType, CountsPastTheLargestLane) {
  // More hits in one lane than 16 bits hold.
  const size_t count = 5'000'000;
  std::vector<uint16_t> halves(count, 0x7c00);
  EXPECT_EQ(CountNonFinite(DType::kF16, {reinterpret_cast<uint8_t*>(halves.data()), 2 * count}),
            count);
}

TEST(Kernels, EveryInstructionSetGivesTheSameBits) {
  std::vector<uint16_t> halves(65536 + 7);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  const auto* bytes = reinterpret_cast<const uint8_t*>(halves.data());
  for (int set = 0; set <= static_cast<int>(base::BestInstructionSet()); ++set) {
    const internal::Kernels& kernels = internal::KernelsFor(static_cast<base::InstructionSet>(set));
    std::vector<float> wide(halves.size());
    kernels.f16_to_f32(bytes, halves.size(), wide.data());
    for (size_t i = 0; i < halves.size(); ++i) {
      const float expected = DecodeF16(halves[i]);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(wide[i])) << i;
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(expected)) << i;
      }
    }
    kernels.bf16_to_f32(bytes, halves.size(), wide.data());
    for (size_t i = 0; i < halves.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), uint32_t{halves[i]} << 16) << i;
    }
    std::vector<double> doubles(1001);
    base::SeededRandom random({3});
    for (double& value : doubles)
      value = std::ldexp(random.Normal(), static_cast<int>(random.Below(300)) - 150);
    std::vector<float> narrow(doubles.size());
    kernels.f64_to_f32(doubles.data(), doubles.size(), reinterpret_cast<uint8_t*>(narrow.data()));
    for (size_t i = 0; i < doubles.size(); ++i) {
      ASSERT_EQ(narrow[i], static_cast<float>(doubles[i])) << doubles[i];
    }
    EXPECT_EQ(kernels.count_exponent_16(bytes, halves.size(), 0x7c00), 2048u);
    EXPECT_EQ(kernels.count_exponent_16(bytes, halves.size(), 0x7f80), 256u);
  }
}

}  // namespace
}  // namespace fl::tensor
