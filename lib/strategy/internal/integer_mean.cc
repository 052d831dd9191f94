#include "strategy/internal/integer_mean.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/check.h"

namespace fl::strategy::internal {
namespace {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

/// weight = significand · 2^exponent, the significand odd.
struct Binary {
  uint64_t significand;
  int exponent;
};

Binary Split(double weight) {
  int exponent = 0;
  const double fraction = std::frexp(weight, &exponent);
  Binary binary{static_cast<uint64_t>(std::ldexp(fraction, 53)), exponent - 53};
  while (binary.significand % 2 == 0) {
    binary.significand /= 2;
    ++binary.exponent;
  }
  return binary;
}

template <typename T, bool kBool>
T LoadValue(const uint8_t* source, size_t index) {
  T value;
  std::memcpy(&value, source + index * sizeof(T), sizeof(T));
  if constexpr (kBool) return value != 0 ? 1 : 0;
  return value;
}

template <typename T>
uint64_t Magnitude(T value) {
  const auto bits = static_cast<uint64_t>(value);
  if constexpr (std::is_signed_v<T>) return value < 0 ? 0 - bits : bits;
  return bits;
}

}  // namespace

void IntegerMean::Wide::Add(const Wide& other) {
  Uint128 carry = 0;
  for (int i = 0; i < 4; ++i) {
    carry += Uint128{limbs[i]} + other.limbs[i];
    limbs[i] = static_cast<uint64_t>(carry);
    carry >>= 64;
  }
}

void IntegerMean::Wide::Subtract(const Wide& other) {
  Uint128 carry = 1;
  for (int i = 0; i < 4; ++i) {
    carry += Uint128{limbs[i]} + ~other.limbs[i];
    limbs[i] = static_cast<uint64_t>(carry);
    carry >>= 64;
  }
}

IntegerMean::Wide IntegerMean::Wide::Times(uint64_t factor) const {
  Wide product;
  Uint128 carry = 0;
  for (int i = 0; i < 4; ++i) {
    carry += Uint128{limbs[i]} * factor;
    product.limbs[i] = static_cast<uint64_t>(carry);
    carry >>= 64;
  }
  return product;
}

bool IntegerMean::Wide::LessThan(const Wide& other) const {
  Wide difference = *this;
  difference.Subtract(other);
  return difference.negative();
}

IntegerMean::IntegerMean(std::span<const double> weights) {
  FL_CHECK(!weights.empty() && weights.size() <= (size_t{1} << 20));
  std::vector<Binary> split;
  for (const double weight : weights) split.push_back(Split(weight));
  const int lowest =
      std::min_element(split.begin(), split.end(), [](const Binary& a, const Binary& b) {
        return a.exponent < b.exponent;
      })->exponent;

  narrow_ = true;
  for (const Binary& binary : split) {
    const int shift = binary.exponent - lowest;
    Wide wide;
    for (int bit = 0; bit < 53; ++bit) {
      const int position = bit + shift;
      if ((binary.significand >> bit & 1) != 0) {
        wide.limbs[position / 64] |= uint64_t{1} << (position % 64);
      }
    }
    wide_weights_.push_back(wide);
    wide_total_.Add(wide);
    weights_.push_back(static_cast<int64_t>(wide.limbs[0]));
  }
  narrow_ = wide_total_.limbs[1] == 0 && wide_total_.limbs[2] == 0 && wide_total_.limbs[3] == 0 &&
            wide_total_.limbs[0] <= uint64_t{1} << 62;
  if (narrow_) {
    total_ = static_cast<int64_t>(wide_total_.limbs[0]);
    wide_weights_.clear();
  } else {
    weights_.clear();
  }
}

template <typename T, bool kBool>
T IntegerMean::NarrowMean(const uint8_t* const* sources, size_t index) const {
  Int128 sum = 0;
  for (size_t k = 0; k < weights_.size(); ++k) {
    sum += Int128{weights_[k]} * LoadValue<T, kBool>(sources[k], index);
  }
  Int128 quotient = sum / total_;
  Int128 rest = sum % total_;
  if (rest < 0) {  // to the floor
    rest += total_;
    --quotient;
  }
  const Int128 twice = 2 * rest;
  if (twice > total_ || (twice == total_ && quotient % 2 != 0)) ++quotient;
  return static_cast<T>(quotient);
}

template <typename T, bool kBool>
T IntegerMean::WideMean(const uint8_t* const* sources, size_t index) const {
  Wide sum;
  Int128 low = LoadValue<T, kBool>(sources[0], index);
  Int128 high = low;
  for (size_t k = 0; k < wide_weights_.size(); ++k) {
    const T value = LoadValue<T, kBool>(sources[k], index);
    const Wide product = wide_weights_[k].Times(Magnitude(value));
    if (value < T{0}) {
      sum.Subtract(product);
    } else {
      sum.Add(product);
    }
    low = std::min(low, Int128{value});
    high = std::max(high, Int128{value});
  }
  // What is left of the sum after `quotient` times the total.
  const auto rest_after = [&](Int128 quotient) {
    Wide rest = sum;
    const Wide product =
        wide_total_.Times(static_cast<uint64_t>(quotient < 0 ? -quotient : quotient));
    if (quotient < 0) {
      rest.Add(product);
    } else {
      rest.Subtract(product);
    }
    return rest;
  };
  // The mean lies between the lowest and the highest value: its floor by halving that range.
  while (low < high) {
    const Int128 middle = low + (high - low + 1) / 2;
    if (rest_after(middle).negative()) {
      high = middle - 1;
    } else {
      low = middle;
    }
  }
  Wide twice = rest_after(low);
  twice.Add(twice);
  const bool above_half = wide_total_.LessThan(twice);
  const bool half = !above_half && !twice.LessThan(wide_total_);
  if (above_half || (half && low % 2 != 0)) ++low;
  return static_cast<T>(low);
}

template <typename T, bool kBool>
void IntegerMean::ComputeAs(const uint8_t* const* sources, size_t count, uint8_t* target) const {
  for (size_t i = 0; i < count; ++i) {
    const T mean = narrow_ ? NarrowMean<T, kBool>(sources, i) : WideMean<T, kBool>(sources, i);
    std::memcpy(target + i * sizeof(T), &mean, sizeof(T));
  }
}

void IntegerMean::Compute(tensor::DType dtype, const uint8_t* const* sources, size_t count,
                          uint8_t* target) const {
  using tensor::DType;
  switch (dtype) {
    case DType::kBool:
      return ComputeAs<uint8_t, true>(sources, count, target);
    case DType::kU8:
      return ComputeAs<uint8_t, false>(sources, count, target);
    case DType::kI8:
      return ComputeAs<int8_t, false>(sources, count, target);
    case DType::kU16:
      return ComputeAs<uint16_t, false>(sources, count, target);
    case DType::kI16:
      return ComputeAs<int16_t, false>(sources, count, target);
    case DType::kU32:
      return ComputeAs<uint32_t, false>(sources, count, target);
    case DType::kI32:
      return ComputeAs<int32_t, false>(sources, count, target);
    case DType::kU64:
      return ComputeAs<uint64_t, false>(sources, count, target);
    case DType::kI64:
      return ComputeAs<int64_t, false>(sources, count, target);
    default:
      FL_CHECK_MSG(false, "not an integer dtype");
  }
}

}  // namespace fl::strategy::internal
