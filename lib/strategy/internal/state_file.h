#pragma once

/// What an algorithm remembers from round to round, as a safetensors file: for each slot ("m", "v")
/// and each floating tensor of the model, in the model's order, a tensor `SLOT/NAME` of its shape.
/// Its dtype is F64 for F64 tensors, else F32. The metadata hold `algorithm` and `step`, the number
/// of steps taken.

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "strategy/aggregate/rule.h"
#include "tensor/safetensors.h"

namespace fl::strategy::internal {

/// The dtype of the state of a floating tensor of dtype `model`.
tensor::DType StateDType(tensor::DType model);
/// The name of a state tensor.
std::string StateTensorName(std::string_view slot, std::string_view tensor);
/// The tensors of the state of `rule` for `model`.
std::vector<tensor::TensorSpec> StateSpecs(const Rule& rule, const tensor::Header& model);
/// The metadata after `step` steps.
tensor::Header::Metadata StateMetadata(const Rule& rule, int64_t step);
/// The number of steps that `state` has seen. kInvalidArgument where it is not a state of `rule`
/// for `model`.
base::Result<int64_t> CheckState(const Rule& rule, const tensor::Header& model,
                                 const tensor::SafetensorsFile& state);

}  // namespace fl::strategy::internal
