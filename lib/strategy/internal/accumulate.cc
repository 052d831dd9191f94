#include "strategy/internal/accumulate.h"

#include <cstring>

#include "base/check.h"

#define FL_INLINE inline __attribute__((always_inline))

namespace fl::strategy::internal {
namespace {

template <typename T, size_t kBytes>
using Vector __attribute__((vector_size(kBytes))) = T;

/// Adds kSources sources at once, so that the sums are loaded and stored once for all of them.
template <typename T, size_t kBytes, size_t kSources>
FL_INLINE void AddGroup(const uint8_t* const* sources, const double* weights, size_t count,
                        double* sums) {
  using Doubles = Vector<double, kBytes>;
  constexpr size_t kLanes = kBytes / sizeof(double);
  using Values = Vector<T, kLanes * sizeof(T)>;
  const uint8_t* source[kSources];
  double weight[kSources];
  for (size_t k = 0; k < kSources; ++k) {
    source[k] = sources[k];
    weight[k] = weights[k];
  }
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Doubles sum;
    std::memcpy(&sum, sums + i, sizeof(sum));
    for (size_t k = 0; k < kSources; ++k) {
      Values values;
      std::memcpy(&values, source[k] + i * sizeof(T), sizeof(values));
      sum += __builtin_convertvector(values, Doubles) * weight[k];
    }
    std::memcpy(sums + i, &sum, sizeof(sum));
  }
  for (; i < count; ++i) {
    double sum = sums[i];
    for (size_t k = 0; k < kSources; ++k) {
      T value;
      std::memcpy(&value, source[k] + i * sizeof(T), sizeof(T));
      sum += static_cast<double>(value) * weight[k];
    }
    sums[i] = sum;
  }
}

template <typename T, size_t kBytes>
FL_INLINE void Add(const uint8_t* const* sources, const double* weights, size_t source_count,
                   size_t count, double* sums) {
  constexpr size_t kGroup = 4;
  size_t k = 0;
  for (; k + kGroup <= source_count; k += kGroup) {
    AddGroup<T, kBytes, kGroup>(sources + k, weights + k, count, sums);
  }
  for (; k < source_count; ++k) AddGroup<T, kBytes, 1>(sources + k, weights + k, count, sums);
}

template <size_t kBytes>
FL_INLINE void Divide(double divisor, size_t count, double* values) {
  using Doubles = Vector<double, kBytes>;
  constexpr size_t kLanes = kBytes / sizeof(double);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Doubles value;
    std::memcpy(&value, values + i, sizeof(value));
    value /= divisor;
    std::memcpy(values + i, &value, sizeof(value));
  }
  for (; i < count; ++i) values[i] /= divisor;
}

#define FL_DEFINE_KERNELS(SUFFIX, TARGET, BYTES)                                   \
  TARGET void AddF32##SUFFIX(const uint8_t* const* sources, const double* weights, \
                             size_t source_count, size_t count, double* sums) {    \
    Add<float, BYTES>(sources, weights, source_count, count, sums);                \
  }                                                                                \
  TARGET void AddF64##SUFFIX(const uint8_t* const* sources, const double* weights, \
                             size_t source_count, size_t count, double* sums) {    \
    Add<double, BYTES>(sources, weights, source_count, count, sums);               \
  }                                                                                \
  TARGET void Divide##SUFFIX(double divisor, size_t count, double* values) {       \
    Divide<BYTES>(divisor, count, values);                                         \
  }                                                                                \
  constexpr AccumulateKernels k##SUFFIX = {AddF32##SUFFIX, AddF64##SUFFIX, Divide##SUFFIX};

FL_DEFINE_KERNELS(Baseline, , 16)
#if defined(__x86_64__)
FL_DEFINE_KERNELS(Avx2, __attribute__((target("avx2"))), 32)
FL_DEFINE_KERNELS(Avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), 64)
#endif

}  // namespace

const AccumulateKernels& AccumulateKernelsFor(base::InstructionSet set) {
  FL_CHECK(set <= base::BestInstructionSet());
#if defined(__x86_64__)
  if (set == base::InstructionSet::kAvx512) return kAvx512;
  if (set == base::InstructionSet::kAvx2) return kAvx2;
#endif
  return kBaseline;
}

}  // namespace fl::strategy::internal
