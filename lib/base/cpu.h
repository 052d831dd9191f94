#pragma once

/// What the processor can do, for the few loops that are compiled for several instruction sets.

namespace fl::base {

/// From the least to the most capable; each includes the ones before.
enum class InstructionSet {
  kBaseline,  ///< what every processor of the architecture has
  kAvx2,      ///< x86-64 with AVX2
  kAvx512,    ///< x86-64 with AVX-512 F, BW, DQ and VL
};

/// The most capable set that this processor and its kernel offer.
inline InstructionSet BestInstructionSet() {
#if defined(__x86_64__)
  static const InstructionSet best = [] {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      return InstructionSet::kAvx512;
    }
    return __builtin_cpu_supports("avx2") ? InstructionSet::kAvx2 : InstructionSet::kBaseline;
  }();
  return best;
#else
  return InstructionSet::kBaseline;
#endif
}

}  // namespace fl::base
