#pragma once

/// Comparing what two files hold: names, dtypes and shapes, by name, whatever their order.

#include <optional>
#include <string>

#include "base/status.h"
#include "tensor/safetensors.h"

namespace fl::tensor {

/// The first thing in which a file differs from the model.
struct Difference {
  std::string tensor;   ///< its name
  std::string message;  ///< e.g. `tensor "w1" has shape [3,2], the model has [2,3]`
};

/// Compares `other` to `model`: first the model's tensors in file order (missing, dtype, shape),
/// then what `other` has besides. Nothing where they agree.
std::optional<Difference> FirstDifference(const Header& model, const Header& other);

/// The same as a Status: kInvalidArgument with the message of the first difference.
base::Status CheckSameSignature(const Header& model, const Header& other);

}  // namespace fl::tensor
