#include "tensor/signature.h"

namespace fl::tensor {

std::optional<Difference> FirstDifference(const Header& model, const Header& other) {
  for (const TensorInfo& expected : model.tensors()) {
    const std::string tensor = "tensor " + Quote(expected.name);
    const TensorInfo* found = other.Find(expected.name);
    if (found == nullptr) return Difference{expected.name, tensor + " is missing"};
    if (found->dtype != expected.dtype) {
      return Difference{expected.name, tensor + " has dtype " + std::string(Name(found->dtype)) +
                                           ", the model has " + std::string(Name(expected.dtype))};
    }
    if (found->shape != expected.shape) {
      return Difference{expected.name, tensor + " has shape " + ShapeToString(found->shape) +
                                           ", the model has " + ShapeToString(expected.shape)};
    }
  }
  for (const TensorInfo& found : other.tensors()) {
    if (model.Find(found.name) == nullptr) {
      return Difference{found.name, "unexpected tensor " + Quote(found.name)};
    }
  }
  return std::nullopt;
}

base::Status CheckSameSignature(const Header& model, const Header& other) {
  const std::optional<Difference> difference = FirstDifference(model, other);
  return difference ? base::InvalidArgument(difference->message) : base::OkStatus();
}

}  // namespace fl::tensor
