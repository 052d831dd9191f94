#include <array>
#include <cmath>

#include "base/random.h"
#include "trainer/builtin.h"

namespace fl::trainer {
namespace {

using base::InvalidArgument;
using base::Result;

constexpr int64_t kMaxWidth = 10'000'000;
constexpr size_t kMaxLayers = 64;
constexpr int64_t kMaxParameters = int64_t{1} << 31;

base::Status Check(const BuiltinModel& model) {
  if (!IsBuiltin(model.architecture)) {
    return InvalidArgument("there is no built-in architecture \"" + model.architecture + "\"",
                           "use mlp or softmax");
  }
  const std::vector<int64_t>& layers = model.layers;
  if (layers.size() < 2 || layers.size() > kMaxLayers) {
    return InvalidArgument("layers has " + std::to_string(layers.size()) + " widths",
                           "give the number of features, of each hidden layer, and of classes");
  }
  if (model.architecture == "softmax" && layers.size() != 2) {
    return InvalidArgument(
        "softmax has no hidden layers, but layers has " + std::to_string(layers.size()) + " widths",
        "give two widths, or use mlp");
  }
  int64_t parameters = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] < 1 || layers[i] > kMaxWidth) {
      return InvalidArgument("layers has width " + std::to_string(layers[i]),
                             "widths are from 1 to 10000000");
    }
    if (i > 0) parameters += (layers[i - 1] + 1) * layers[i];
    if (parameters > kMaxParameters) {
      return InvalidArgument("layers give more than 2^31 parameters", "use fewer or narrower ones");
    }
  }
  return base::OkStatus();
}

}  // namespace

bool IsBuiltin(std::string_view name) { return name == "mlp" || name == "softmax"; }

Result<std::vector<tensor::Tensor>> InitialWeights(const BuiltinModel& model) {
  FL_RETURN_IF_ERROR(Check(model));
  std::vector<tensor::Tensor> tensors;
  for (size_t i = 0; i + 1 < model.layers.size(); ++i) {
    const uint64_t inputs = static_cast<uint64_t>(model.layers[i]);
    const uint64_t outputs = static_cast<uint64_t>(model.layers[i + 1]);
    base::SeededRandom random({model.seed, i});
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    const auto uniform = [&random, bound](size_t count) {
      std::vector<float> values(count);
      for (float& value : values) value = static_cast<float>(bound * (2 * random.Unit() - 1));
      return values;
    };
    const std::string prefix = "layers." + std::to_string(i);
    tensors.push_back(tensor::Tensor::FromFloats(prefix + ".weight", {outputs, inputs},
                                                 uniform(outputs * inputs)));
    tensors.push_back(tensor::Tensor::FromFloats(prefix + ".bias", {outputs}, uniform(outputs)));
  }
  return tensors;
}

Result<tensor::FileSummary> WriteInitialModel(const BuiltinModel& model, const base::Path& path) {
  FL_ASSIGN_OR_RETURN(const std::vector<tensor::Tensor> tensors, InitialWeights(model));
  return tensor::WriteSafetensors(path, tensors);
}

}  // namespace fl::trainer
