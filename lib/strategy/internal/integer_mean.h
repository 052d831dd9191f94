#pragma once

/// The exact weighted mean of integers, rounded half to even.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tensor/dtype.h"

namespace fl::strategy::internal {

/// Weights of a round, prepared once. Every weight is a binary fraction, so scaling all of them by
/// one power of two makes them integers and leaves the mean as it is.
class IntegerMean {
 public:
  /// `weights` > 0, each between kMinWeight and kMaxWeight; at least one.
  explicit IntegerMean(std::span<const double> weights);

  /// target[i] = Σ weights[k]·sources[k][i] / Σ weights[k], for `count` elements of an integer
  /// dtype or of BOOL (where every byte but 0 is true). No alignment is needed.
  void Compute(tensor::DType dtype, const uint8_t* const* sources, size_t count,
               uint8_t* target) const;

 private:
  /// 256-bit two's complement: enough for 2^20 weights of 158 bits times 64 bits.
  struct Wide {
    uint64_t limbs[4] = {0, 0, 0, 0};
    void Add(const Wide& other);
    void Subtract(const Wide& other);
    bool negative() const { return (limbs[3] >> 63) != 0; }
    /// This, not negative and below 2^192, times `factor`.
    Wide Times(uint64_t factor) const;
    bool LessThan(const Wide& other) const;
  };

  template <typename T, bool kBool>
  void ComputeAs(const uint8_t* const* sources, size_t count, uint8_t* target) const;
  template <typename T, bool kBool>
  T NarrowMean(const uint8_t* const* sources, size_t index) const;
  template <typename T, bool kBool>
  T WideMean(const uint8_t* const* sources, size_t index) const;

  // Where the scaled weights and their sum stay below 2^62, sums fit 128 bits.
  bool narrow_ = false;
  std::vector<int64_t> weights_;
  int64_t total_ = 0;
  // Else:
  std::vector<Wide> wide_weights_;
  Wide wide_total_;
};

}  // namespace fl::strategy::internal
