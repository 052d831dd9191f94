#include "tensor/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "tensor/internal/kernels.h"

namespace fl::tensor {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors is little endian, and files are mapped");

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  size_t size;
  bool floating;
};

constexpr std::array<DTypeInfo, 15> kDTypes = {{
    {DType::kBool, "BOOL", 1, false},
    {DType::kU8, "U8", 1, false},
    {DType::kI8, "I8", 1, false},
    {DType::kU16, "U16", 2, false},
    {DType::kI16, "I16", 2, false},
    {DType::kU32, "U32", 4, false},
    {DType::kI32, "I32", 4, false},
    {DType::kU64, "U64", 8, false},
    {DType::kI64, "I64", 8, false},
    {DType::kF8E4M3, "F8_E4M3", 1, true},
    {DType::kF8E5M2, "F8_E5M2", 1, true},
    {DType::kF16, "F16", 2, true},
    {DType::kBF16, "BF16", 2, true},
    {DType::kF32, "F32", 4, true},
    {DType::kF64, "F64", 8, true},
}};

const DTypeInfo& InfoOf(DType dtype) {
  const DTypeInfo& info = kDTypes.at(static_cast<size_t>(dtype));
  FL_CHECK(info.dtype == dtype);
  return info;
}

/// A binary floating format: sign, kExponent bits with the usual bias, kMantissa bits.
/// `kLargest` is the bit pattern of the largest finite value, and `kOverflow` and `kNaN` those for
/// values past it and for NaN.
template <int kExponent, int kMantissa, uint32_t kLargest, uint32_t kOverflow, uint32_t kNaN>
struct Format {
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;

  static uint32_t Encode(double value) {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    const uint32_t sign = static_cast<uint32_t>(bits >> 63) << (kExponent + kMantissa);
    if (std::isnan(value)) return sign | kNaN;
    const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
    if (std::isinf(value)) return sign | kOverflow;
    const int exponent = static_cast<int>(magnitude >> 52) - 1023 + kBias;  // as it would be stored
    uint64_t significand;  // stored exponent and mantissa, with bits below that are rounded away
    int shift = 52 - kMantissa;
    if (exponent >= 1) {
      significand = (uint64_t{static_cast<unsigned>(exponent)} << 52) |
                    (magnitude & ((uint64_t{1} << 52) - 1));
    } else {
      // Subnormal: the leading 1 becomes explicit. Subnormals of F64 are far below and end as 0.
      significand = (magnitude & ((uint64_t{1} << 52) - 1)) | (uint64_t{1} << 52);
      shift += 1 - exponent;
      if (shift > 54) return sign;
    }
    const uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
    const uint64_t half = uint64_t{1} << (shift - 1);
    uint64_t rounded = significand >> shift;
    if (rest > half || (rest == half && (rounded & 1) != 0)) ++rounded;  // carries into exponent
    return sign | (rounded > kLargest ? kOverflow : static_cast<uint32_t>(rounded));
  }

  static float Decode(uint32_t bits) {
    const uint32_t magnitude = bits & ((1u << (kExponent + kMantissa)) - 1);
    const bool negative = (bits >> (kExponent + kMantissa)) != 0;
    float value;
    if (magnitude > kLargest) {
      value = magnitude == kOverflow && kOverflow != kNaN ? std::numeric_limits<float>::infinity()
                                                          : std::numeric_limits<float>::quiet_NaN();
    } else {
      const int exponent = static_cast<int>(magnitude >> kMantissa);
      const uint32_t mantissa = magnitude & ((1u << kMantissa) - 1);
      value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - kBias - kMantissa)
                            : std::ldexp(static_cast<float>(mantissa | (1u << kMantissa)),
                                         exponent - kBias - kMantissa);
    }
    return negative ? -value : value;
  }
};

using F16 = Format<5, 10, 0x7bff, 0x7c00, 0x7e00>;
using BF16 = Format<8, 7, 0x7f7f, 0x7f80, 0x7fc0>;
using F8E4M3 = Format<4, 3, 0x7e, 0x7f, 0x7f>;
using F8E5M2 = Format<5, 2, 0x7b, 0x7c, 0x7e>;

template <typename F>
const std::array<float, 256>& ByteTable() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values{};
    for (uint32_t i = 0; i < 256; ++i) values[i] = F::Decode(i);
    return values;
  }();
  return table;
}

template <typename F>
size_t CountNonFiniteBytes(std::span<const uint8_t> bytes) {
  const std::array<float, 256>& table = ByteTable<F>();
  size_t count = 0;
  for (const uint8_t byte : bytes) count += std::isfinite(table[byte]) ? 0 : 1;
  return count;
}

template <typename T>
T Load(const uint8_t* source, size_t index) {
  T value;
  std::memcpy(&value, source + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void Store(uint8_t* target, size_t index, T value) {
  std::memcpy(target + index * sizeof(T), &value, sizeof(T));
}

template <typename Stored, typename Value, typename Convert>
void EncodeEach(const Value* source, size_t count, uint8_t* target, Convert convert) {
  for (size_t i = 0; i < count; ++i) {
    Store<Stored>(target, i, static_cast<Stored>(convert(source[i])));
  }
}

template <typename Value>
size_t Encode(DType dtype, const Value* source, size_t count, uint8_t* target) {
  switch (dtype) {
    case DType::kF8E4M3:
      EncodeEach<uint8_t>(source, count, target, F8E4M3::Encode);
      break;
    case DType::kF8E5M2:
      EncodeEach<uint8_t>(source, count, target, F8E5M2::Encode);
      break;
    case DType::kF16:
      EncodeEach<uint16_t>(source, count, target, F16::Encode);
      break;
    case DType::kBF16:
      EncodeEach<uint16_t>(source, count, target, BF16::Encode);
      break;
    case DType::kF32:
      if constexpr (std::is_same_v<Value, double>) {
        internal::BestKernels().f64_to_f32(source, count, target);
      } else {
        EncodeEach<float>(source, count, target, [](Value value) { return value; });
      }
      break;
    case DType::kF64:
      EncodeEach<double>(source, count, target, [](Value value) { return value; });
      break;
    default:
      FL_CHECK_MSG(false, "not a floating dtype");
  }
  return CountNonFinite(dtype, {target, count * ElementSize(dtype)});
}

template <typename Value>
void DecodeBytes(const std::array<float, 256>& table, const uint8_t* source, size_t count,
                 Value* target) {
  for (size_t i = 0; i < count; ++i) target[i] = table[source[i]];
}

}  // namespace

size_t ElementSize(DType dtype) { return InfoOf(dtype).size; }
std::string_view Name(DType dtype) { return InfoOf(dtype).name; }
bool IsFloating(DType dtype) { return InfoOf(dtype).floating; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << Name(dtype); }

uint16_t EncodeF16(double value) { return static_cast<uint16_t>(F16::Encode(value)); }
uint16_t EncodeBF16(double value) { return static_cast<uint16_t>(BF16::Encode(value)); }
float DecodeF16(uint16_t bits) { return F16::Decode(bits); }
float DecodeBF16(uint16_t bits) { return BF16::Decode(bits); }

void DecodeToFloat(DType dtype, const uint8_t* source, size_t count, float* target) {
  switch (dtype) {
    case DType::kF8E4M3:
      return DecodeBytes(ByteTable<F8E4M3>(), source, count, target);
    case DType::kF8E5M2:
      return DecodeBytes(ByteTable<F8E5M2>(), source, count, target);
    case DType::kF16:
      return internal::BestKernels().f16_to_f32(source, count, target);
    case DType::kBF16:
      return internal::BestKernels().bf16_to_f32(source, count, target);
    case DType::kF32:
      if (count > 0) std::memcpy(target, source, count * sizeof(float));
      return;
    case DType::kF64:
      for (size_t i = 0; i < count; ++i) target[i] = static_cast<float>(Load<double>(source, i));
      return;
    default:
      FL_CHECK_MSG(false, "not a floating dtype");
  }
}

void DecodeToDouble(DType dtype, const uint8_t* source, size_t count, double* target) {
  if (dtype == DType::kF64) {
    if (count > 0) std::memcpy(target, source, count * sizeof(double));
    return;
  }
  constexpr size_t kBlock = 512;
  std::array<float, kBlock> block;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    DecodeToFloat(dtype, source + begin * ElementSize(dtype), size, block.data());
    for (size_t i = 0; i < size; ++i) target[begin + i] = block[i];
  }
}

size_t EncodeFromDouble(DType dtype, const double* source, size_t count, uint8_t* target) {
  return Encode(dtype, source, count, target);
}

size_t EncodeFromFloat(DType dtype, const float* source, size_t count, uint8_t* target) {
  return Encode(dtype, source, count, target);
}

size_t CountNonFinite(DType dtype, std::span<const uint8_t> bytes) {
  const internal::Kernels& kernels = internal::BestKernels();
  switch (dtype) {
    case DType::kF8E4M3:
      return CountNonFiniteBytes<F8E4M3>(bytes);
    case DType::kF8E5M2:
      return CountNonFiniteBytes<F8E5M2>(bytes);
    case DType::kF16:
      return kernels.count_exponent_16(bytes.data(), bytes.size() / 2, 0x7c00);
    case DType::kBF16:
      return kernels.count_exponent_16(bytes.data(), bytes.size() / 2, 0x7f80);
    case DType::kF32:
      return kernels.count_exponent_32(bytes.data(), bytes.size() / 4, 0x7f800000);
    case DType::kF64:
      return kernels.count_exponent_64(bytes.data(), bytes.size() / 8, 0x7ff0000000000000);
    default:
      return 0;
  }
}

std::optional<size_t> FirstNonFinite(DType dtype, std::span<const uint8_t> bytes) {
  if (CountNonFinite(dtype, bytes) == 0) return std::nullopt;
  const size_t size = ElementSize(dtype);
  size_t index = 0;
  while (CountNonFinite(dtype, bytes.subspan(index * size, size)) == 0) ++index;
  return index;
}

}  // namespace fl::tensor
