#pragma once

/// How good a built-in model is on a dataset.

#include <cstdint>
#include <stop_token>

#include "base/file.h"
#include "base/status.h"
#include "trainer/dataset.h"

namespace fl::trainer {

struct Evaluation {
  int64_t samples = 0;
  double loss = 0;      ///< mean cross-entropy, natural logarithm; 0 where there are no samples
  double accuracy = 0;  ///< part of the samples whose largest output is the label's
};

struct EvaluateOptions {
  double feature_scale = 1;  ///< as the job's trainer config has it
  int64_t batch_size = 256;
  Split default_split = Split::kTest;
};

/// True where the safetensors file has the tensors of a built-in network (builtin.h).
base::Result<bool> IsBuiltinModel(const base::Path& model);

/// Evaluates the weights at `model`. Memory: the weights and one batch. kFailedPrecondition where
/// the model is none of the built-in networks or does not fit the data; kCancelled; else as
/// LoadDataset.
base::Result<Evaluation> EvaluateModel(const base::Path& model, const DatasetSpec& dataset,
                                       const EvaluateOptions& options = {},
                                       std::stop_token stop = {});

}  // namespace fl::trainer
