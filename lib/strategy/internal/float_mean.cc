#include "strategy/internal/float_mean.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace fl::strategy::internal {

using tensor::DType;

FloatMean::FloatMean(std::span<const double> weights, base::InstructionSet set)
    : kernels_(AccumulateKernelsFor(set)), weights_(weights.begin(), weights.end()) {
  FL_CHECK(!weights_.empty());
  if (std::all_of(weights_.begin(), weights_.end(),
                  [&](double weight) { return weight == weights_.front(); })) {
    std::fill(weights_.begin(), weights_.end(), 1.0);
  }
  for (const double weight : weights_) total_ += weight;
}

bool FloatMean::Compute(DType dtype, const uint8_t* const* sources, size_t count,
                        double* means) const {
  FL_CHECK(count <= kBlock);
  // -0 is what adds nothing to any value, itself included.
  std::fill_n(means, count, -0.0);
  switch (dtype) {
    case DType::kF32:
      kernels_.add_f32(sources, weights_.data(), weights_.size(), count, means);
      break;
    case DType::kF64:
      kernels_.add_f64(sources, weights_.data(), weights_.size(), count, means);
      break;
    default: {
      std::array<float, kBlock> decoded;
      const auto* bytes = reinterpret_cast<const uint8_t*>(decoded.data());
      for (size_t k = 0; k < weights_.size(); ++k) {
        tensor::DecodeToFloat(dtype, sources[k], count, decoded.data());
        kernels_.add_f32(&bytes, &weights_[k], 1, count, means);
      }
    }
  }
  kernels_.divide(total_, count, means);
  // Whatever is not finite in a source stays so in the sum; and no sum of F32 or smaller values,
  // with weights within the limits, leaves F64.
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(means),
                                       count * sizeof(double));
  if (tensor::CountNonFinite(DType::kF64, bytes) == 0) return true;
  if (dtype != DType::kF64) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!std::isfinite(means[i]) && !ComputeWide(sources, i, means[i])) return false;
  }
  return true;
}

bool FloatMean::ComputeWide(const uint8_t* const* sources, size_t index, double& mean) const {
  // Scaled by a power of two the weights sum to less than 1, so that nothing overflows; the
  // rounding of the last division still may, by one step, and is held back.
  int exponent = 0;
  std::frexp(total_, &exponent);
  double sum = -0.0;
  for (size_t k = 0; k < weights_.size(); ++k) {
    double value;
    std::memcpy(&value, sources[k] + index * sizeof(double), sizeof(double));
    if (!std::isfinite(value)) return false;
    sum += std::ldexp(weights_[k], -exponent) * value;
  }
  constexpr double kLargest = std::numeric_limits<double>::max();
  mean = std::clamp(sum / std::ldexp(total_, -exponent), -kLargest, kLargest);
  return true;
}

}  // namespace fl::strategy::internal
