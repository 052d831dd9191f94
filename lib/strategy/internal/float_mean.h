#pragma once

/// The weighted mean of floating tensors, in F64.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strategy/internal/accumulate.h"
#include "tensor/dtype.h"

namespace fl::strategy::internal {

/// Coordinates that are worked on at a time: their sums stay in the innermost cache.
inline constexpr size_t kBlock = 2048;

/// Weights of a round, prepared once. Thread-safe after construction.
class FloatMean {
 public:
  /// `weights` > 0, in the order of the sources; at least one. Where all are equal the plain mean
  /// is taken, which saves a rounding of each product.
  explicit FloatMean(std::span<const double> weights,
                     base::InstructionSet set = base::BestInstructionSet());

  /// means[i] = Σ weights[k]·sources[k][i] / Σ weights[k] for i < count ≤ kBlock. A mean of finite
  /// values is finite, also where the plain sum would overflow F64. Returns false where a source is
  /// not finite.
  bool Compute(tensor::DType dtype, const uint8_t* const* sources, size_t count,
               double* means) const;

 private:
  bool ComputeWide(const uint8_t* const* sources, size_t index, double& mean) const;

  const AccumulateKernels& kernels_;
  std::vector<double> weights_;
  double total_ = 0;
};

}  // namespace fl::strategy::internal
