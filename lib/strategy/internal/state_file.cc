#include "strategy/internal/state_file.h"

#include <charconv>
#include <limits>

#include "strategy/internal/server_step.h"
#include "tensor/signature.h"

namespace fl::strategy::internal {

using base::InvalidArgument;
using base::Result;
using tensor::DType;

DType StateDType(DType model) { return model == DType::kF64 ? DType::kF64 : DType::kF32; }

std::string StateTensorName(std::string_view slot, std::string_view tensor) {
  return std::string(slot) + "/" + std::string(tensor);
}

std::vector<tensor::TensorSpec> StateSpecs(const Rule& rule, const tensor::Header& model) {
  std::vector<tensor::TensorSpec> specs;
  for (const std::string_view slot : StateSlots(rule)) {
    for (const tensor::TensorInfo& info : model.tensors()) {
      if (!tensor::IsFloating(info.dtype)) continue;
      specs.push_back({StateTensorName(slot, info.name), StateDType(info.dtype), info.shape});
    }
  }
  return specs;
}

tensor::Header::Metadata StateMetadata(const Rule& rule, int64_t step) {
  return {{"algorithm", rule.name()}, {"step", std::to_string(step)}};
}

Result<int64_t> CheckState(const Rule& rule, const tensor::Header& model,
                           const tensor::SafetensorsFile& state) {
  const std::string where = "state " + state.path().string();
  const tensor::Header::Metadata& metadata = state.header().metadata();
  const auto algorithm = metadata.find("algorithm");
  const auto step = metadata.find("step");
  if (algorithm == metadata.end() || step == metadata.end()) {
    return InvalidArgument(where + " is not the state of an aggregation algorithm");
  }
  if (algorithm->second != rule.name()) {
    return InvalidArgument(where + " belongs to " + tensor::Quote(algorithm->second) +
                               ", the algorithm is " + rule.name(),
                           "start without a state");
  }
  int64_t steps = 0;
  const char* const end = step->second.data() + step->second.size();
  const auto [parsed, error] = std::from_chars(step->second.data(), end, steps);
  if (error != std::errc() || parsed != end || steps < 1 ||
      steps == std::numeric_limits<int64_t>::max()) {
    return InvalidArgument(where + " has step " + tensor::Quote(step->second) +
                           ", which is not a number of rounds");
  }
  FL_ASSIGN_OR_RETURN(const tensor::Header expected, tensor::Header::Make(StateSpecs(rule, model)));
  if (const auto difference = tensor::FirstDifference(expected, state.header())) {
    return InvalidArgument(where + " is of another model: " + difference->message);
  }
  return steps;
}

}  // namespace fl::strategy::internal
