#pragma once

/// The aggregation algorithms by name, with their parameters: what validation accepts. The modules
/// that implement them hold to these names and defaults.

#include <span>
#include <string_view>

namespace fl::spec {

struct AlgorithmParameter {
  std::string_view name;
  std::string_view default_value;  ///< empty: follows from others, or required
  double minimum = 0;
  double maximum = 0;
  bool minimum_allowed = true;  ///< false: must be greater than the minimum
  bool maximum_allowed = true;  ///< false: must be less than the maximum
  bool integer = false;
  bool boolean = false;  ///< "true" or "false"
  bool required = false;
};

struct Algorithm {
  std::string_view name;
  std::span<const AlgorithmParameter> parameters;
  /// It looks at single updates, so that it cannot work on a masked sum.
  bool needs_single_updates = false;
  /// It needs each client's number of steps, which does not leave a client under DP.
  bool needs_step_counts = false;
  bool needs_root_dataset = false;
};

/// All of them, in the order in which they are documented.
std::span<const Algorithm> Algorithms();
/// nullptr where there is none of that name.
const Algorithm* FindAlgorithm(std::string_view name);

}  // namespace fl::spec
