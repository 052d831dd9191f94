#include "tensor/internal/kernels.h"

#include <bit>
#include <cstring>

#include "base/check.h"

// The bodies are written with the compilers' vector types (GCC and Clang), kBytes wide, and inlined
// into one function for each instruction set.
#define FL_INLINE inline __attribute__((always_inline))

namespace fl::tensor::internal {
namespace {

template <typename T, size_t kBytes>
using Vector __attribute__((vector_size(kBytes))) = T;

template <typename T, size_t kBytes>
FL_INLINE size_t CountExponent(const uint8_t* source, size_t count, T exponent) {
  using V = Vector<T, kBytes>;
  constexpr size_t kLanes = kBytes / sizeof(T);
  constexpr size_t kUnroll = 4;
  // A lane counts up to its largest value before it is added up.
  constexpr size_t kMaxSteps = size_t{1} << (sizeof(T) == 2 ? 15 : 30);
  size_t total = 0;
  size_t i = 0;
  while (i + kUnroll * kLanes <= count) {
    V sums[kUnroll] = {};
    for (size_t step = 0; step < kMaxSteps && i + kUnroll * kLanes <= count; ++step) {
      for (size_t u = 0; u < kUnroll; ++u) {
        V x;
        std::memcpy(&x, source + (i + u * kLanes) * sizeof(T), kBytes);
        const auto hit = (x & exponent) == exponent;  // all ones where true
        V ones;
        std::memcpy(&ones, &hit, kBytes);
        sums[u] -= ones;
      }
      i += kUnroll * kLanes;
    }
    for (const V& sum : sums) {
      for (size_t lane = 0; lane < kLanes; ++lane) total += sum[lane];
    }
  }
  for (; i < count; ++i) {
    T x;
    std::memcpy(&x, source + i * sizeof(T), sizeof(T));
    total += (x & exponent) == exponent ? 1 : 0;
  }
  return total;
}

FL_INLINE float WidenF16(uint16_t half) {
  const uint32_t magnitude = uint32_t{half} & 0x7fff;
  // Shifted into place the exponent is 112 too small; the product is exact, also for subnormals.
  uint32_t bits = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
  if (magnitude >= 0x7c00) bits |= 0x7f800000;
  return std::bit_cast<float>(bits | (uint32_t{half} & 0x8000) << 16);
}

FL_INLINE float WidenBF16(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

template <size_t kBytes>
FL_INLINE void F16ToF32(const uint8_t* source, size_t count, float* target) {
  using Halves = Vector<uint16_t, kBytes / 2>;
  using Words = Vector<uint32_t, kBytes>;
  using Floats = Vector<float, kBytes>;
  constexpr size_t kLanes = kBytes / 4;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Halves halves;
    std::memcpy(&halves, source + i * 2, sizeof(halves));
    const Words wide = __builtin_convertvector(halves, Words);
    const Words magnitude = wide & 0x7fff;
    const Words shifted = magnitude << 13;
    Floats value;
    std::memcpy(&value, &shifted, kBytes);
    value *= 0x1p112f;
    Words bits;
    std::memcpy(&bits, &value, kBytes);
    const auto special = magnitude >= 0x7c00;
    Words mask;
    std::memcpy(&mask, &special, kBytes);
    bits |= (mask & 0x7f800000) | (wide & 0x8000) << 16;
    std::memcpy(target + i, &bits, kBytes);
  }
  for (; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, source + i * 2, 2);
    target[i] = WidenF16(half);
  }
}

template <size_t kBytes>
FL_INLINE void BF16ToF32(const uint8_t* source, size_t count, float* target) {
  using Halves = Vector<uint16_t, kBytes / 2>;
  using Words = Vector<uint32_t, kBytes>;
  constexpr size_t kLanes = kBytes / 4;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Halves halves;
    std::memcpy(&halves, source + i * 2, sizeof(halves));
    const Words bits = __builtin_convertvector(halves, Words) << 16;
    std::memcpy(target + i, &bits, kBytes);
  }
  for (; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, source + i * 2, 2);
    target[i] = WidenBF16(half);
  }
}

template <size_t kBytes>
FL_INLINE void F64ToF32(const double* source, size_t count, uint8_t* target) {
  using Doubles = Vector<double, kBytes>;
  using Floats = Vector<float, kBytes / 2>;
  constexpr size_t kLanes = kBytes / 8;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Doubles wide;
    std::memcpy(&wide, source + i, kBytes);
    const Floats narrow = __builtin_convertvector(wide, Floats);
    std::memcpy(target + i * 4, &narrow, sizeof(narrow));
  }
  for (; i < count; ++i) {
    const auto narrow = static_cast<float>(source[i]);
    std::memcpy(target + i * 4, &narrow, 4);
  }
}

#define FL_DEFINE_KERNELS(SUFFIX, TARGET, BYTES)                                          \
  TARGET size_t Count16##SUFFIX(const uint8_t* source, size_t count, uint16_t exponent) { \
    return CountExponent<uint16_t, BYTES>(source, count, exponent);                       \
  }                                                                                       \
  TARGET size_t Count32##SUFFIX(const uint8_t* source, size_t count, uint32_t exponent) { \
    return CountExponent<uint32_t, BYTES>(source, count, exponent);                       \
  }                                                                                       \
  TARGET size_t Count64##SUFFIX(const uint8_t* source, size_t count, uint64_t exponent) { \
    return CountExponent<uint64_t, BYTES>(source, count, exponent);                       \
  }                                                                                       \
  TARGET void F16ToF32##SUFFIX(const uint8_t* source, size_t count, float* target) {      \
    F16ToF32<BYTES>(source, count, target);                                               \
  }                                                                                       \
  TARGET void BF16ToF32##SUFFIX(const uint8_t* source, size_t count, float* target) {     \
    BF16ToF32<BYTES>(source, count, target);                                              \
  }                                                                                       \
  TARGET void F64ToF32##SUFFIX(const double* source, size_t count, uint8_t* target) {     \
    F64ToF32<BYTES>(source, count, target);                                               \
  }                                                                                       \
  constexpr Kernels k##SUFFIX = {Count16##SUFFIX,  Count32##SUFFIX,   Count64##SUFFIX,    \
                                 F16ToF32##SUFFIX, BF16ToF32##SUFFIX, F64ToF32##SUFFIX};

FL_DEFINE_KERNELS(Baseline, , 16)
#if defined(__x86_64__)
FL_DEFINE_KERNELS(Avx2, __attribute__((target("avx2"))), 32)
FL_DEFINE_KERNELS(Avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), 64)
#endif

}  // namespace

const Kernels& KernelsFor(base::InstructionSet set) {
  FL_CHECK(set <= base::BestInstructionSet());
#if defined(__x86_64__)
  if (set == base::InstructionSet::kAvx512) return kAvx512;
  if (set == base::InstructionSet::kAvx2) return kAvx2;
#endif
  return kBaseline;
}

const Kernels& BestKernels() {
  static const Kernels& best = KernelsFor(base::BestInstructionSet());
  return best;
}

}  // namespace fl::tensor::internal
