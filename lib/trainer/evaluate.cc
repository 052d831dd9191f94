#include "trainer/evaluate.h"

#include <cmath>

#include "trainer/builtin/model.h"

namespace fl::trainer {

using base::Result;
using base::Status;
using builtin::Model;

Result<bool> IsBuiltinModel(const base::Path& model) {
  FL_ASSIGN_OR_RETURN(const tensor::SafetensorsFile file, tensor::SafetensorsFile::Open(model));
  return Model::LayersOf(file.header()).ok();
}

Result<Evaluation> EvaluateModel(const base::Path& path, const DatasetSpec& dataset,
                                 const EvaluateOptions& options, std::stop_token stop) {
  FL_ASSIGN_OR_RETURN(const Model model, Model::Load(path));
  builtin::AlignedFloats scratch(ScratchFloats(model.network(), options.batch_size));
  builtin::AlignedFloats values;
  Evaluation evaluation;
  double loss = 0;
  int64_t correct = 0;
  const auto visit = [&](const Batch& batch) -> Status {
    if (stop.stop_requested()) return base::Cancelled("evaluation was stopped");
    FL_RETURN_IF_ERROR(model.CheckFits(dataset.path.string(), batch.features, batch.labels));
    values.assign(batch.values.begin(), batch.values.end());
    for (float& value : values) value *= static_cast<float>(options.feature_scale);
    const int64_t rows = static_cast<int64_t>(batch.labels.size());
    builtin::ActiveKernels().evaluate(model.network(), model.parameters().data(), scratch.data(),
                                      values.data(), batch.labels.data(), rows, &loss, &correct);
    evaluation.samples += rows;
    return base::OkStatus();
  };
  FL_RETURN_IF_ERROR(ForEachBatch(dataset, options.batch_size, options.default_split, visit));
  if (evaluation.samples > 0) {
    if (!std::isfinite(loss)) {
      return base::FailedPrecondition("evaluation gives a loss that is not finite",
                                      "check the scale of the data (featureScale)");
    }
    evaluation.loss = loss / static_cast<double>(evaluation.samples);
    evaluation.accuracy = static_cast<double>(correct) / static_cast<double>(evaluation.samples);
  }
  return evaluation;
}

}  // namespace fl::trainer
