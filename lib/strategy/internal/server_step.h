#pragma once

/// From the mean of a round to the next model: the optimisers of the table in aggregate/rule.h.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strategy/aggregate/rule.h"

namespace fl::strategy::internal {

/// What a rule remembers of each coordinate: "m", or "m" and "v", in this order; for no state,
/// nothing. The names are the prefixes of the state's tensors.
std::vector<std::string_view> StateSlots(const Rule& rule);

/// One round's step. Thread-safe.
class ServerStep {
 public:
  /// `delta_scale` multiplies mean − global (FedNova's; 1 elsewhere). `round` counts this rule's
  /// steps from 1, for the bias correction.
  ServerStep(const Rule& rule, double delta_scale, int64_t round);

  /// True where the next model is the mean itself, and Apply need not be called.
  bool is_identity() const;
  /// What slot `slot` starts with.
  double InitialState(size_t slot) const;
  /// Turns `values`, the means, into the next model's values, and updates `m` and `v` (null for
  /// slots that the rule has not). All arrays have `count` elements.
  void Apply(size_t count, const double* global, double* m, double* v, double* values) const;

 private:
  const Rule& rule_;
  double delta_scale_;
  double m_correction_ = 1;  // what m is divided by in the step
  double v_correction_ = 1;
};

}  // namespace fl::strategy::internal
