#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/safetensors.h"

namespace fl::cli::internal {

/// How far a tensor of one file is from the same tensor of another, in F64.
struct TensorChange {
  std::string tensor;
  std::string note;  ///< "added", "removed", "[2,3] F32 -> [3,2] F32"; else "" and the numbers hold
  double l2 = 0;     ///< Euclidean norm of b − a
  double relative = 0;   ///< l2 over the norm of a; 0 where both are 0, infinite where only a's is
  double max = 0;        ///< largest |b − a|
  uint64_t changed = 0;  ///< elements that differ
  uint64_t elements = 0;
};

/// All tensors of both, in the order of `a`, then what only `b` has. Memory: one tile.
std::vector<TensorChange> CompareTensors(const tensor::SafetensorsFile& a,
                                         const tensor::SafetensorsFile& b);

}  // namespace fl::cli::internal
