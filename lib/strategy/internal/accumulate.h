#pragma once

/// The inner loops of the weighted mean, compiled for several instruction sets that all give the
/// same bits: each coordinate is summed on its own, source after source, with one rounding for each
/// product and each sum.

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace fl::strategy::internal {

struct AccumulateKernels {
  /// sums[i] += weights[k] · sources[k][i] for k = 0, 1, … in this order and i < count. Sources are
  /// F32 (F64) at any alignment.
  void (*add_f32)(const uint8_t* const* sources, const double* weights, size_t source_count,
                  size_t count, double* sums);
  void (*add_f64)(const uint8_t* const* sources, const double* weights, size_t source_count,
                  size_t count, double* sums);
  /// values[i] /= divisor.
  void (*divide)(double divisor, size_t count, double* values);
};

/// The loops for `set`, which the processor must have.
const AccumulateKernels& AccumulateKernelsFor(base::InstructionSet set);

}  // namespace fl::strategy::internal
