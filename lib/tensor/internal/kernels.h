#pragma once

/// The loops over elements, compiled for several instruction sets. Every version gives the same
/// bits. Pointers need no alignment.

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace fl::tensor::internal {

struct Kernels {
  /// Number of elements with all bits of `exponent` set, among `count` of 16, 32 or 64 bits.
  size_t (*count_exponent_16)(const uint8_t* source, size_t count, uint16_t exponent);
  size_t (*count_exponent_32)(const uint8_t* source, size_t count, uint32_t exponent);
  size_t (*count_exponent_64)(const uint8_t* source, size_t count, uint64_t exponent);
  /// Exact widening.
  void (*f16_to_f32)(const uint8_t* source, size_t count, float* target);
  void (*bf16_to_f32)(const uint8_t* source, size_t count, float* target);
  /// Rounded to nearest even.
  void (*f64_to_f32)(const double* source, size_t count, uint8_t* target);
};

/// The loops for `set`, which the processor must have.
const Kernels& KernelsFor(base::InstructionSet set);
/// The loops for this processor's best set.
const Kernels& BestKernels();

}  // namespace fl::tensor::internal
