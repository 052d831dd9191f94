#pragma once

/// The built-in trainers: softmax regression and multilayer perceptrons with ReLU, trained by
/// mini-batch SGD on cross-entropy in F32.
///
/// Tensors are named and laid out as PyTorch's nn.Linear in a ModuleList `layers`:
/// `layers.N.weight` F32 [out, in] and `layers.N.bias` F32 [out], N from 0. Softmax regression is
/// the perceptron without a hidden layer.
///
/// Config of a job's trainer:
///   learningRate       (0.01)  step size, > 0
///   learningRateDecay  (1)     factor a round: round r uses learningRate * decay^(r-1); (0, 1]
///   localEpochs        (1)     passes over the client's data, ≥ 1
///   batchSize          (32)    samples of a step; 0: all of them. The last batch may be smaller.
///   momentum           (0)     v = momentum v + g; w = w - lr v (PyTorch's form); [0, 1)
///   weightDecay        (0)     adds weightDecay * w to the gradient; ≥ 0
///   featureScale       (1)     features are multiplied by it (IDX pixels come divided by 255); > 0
///   evalBatchSize      (256)   samples of a step of evaluation; no effect on the result
/// FedProx (Li et al. 2020, eq. 2) adds mu * (w - w_global) to the gradient, with mu of the task.
///
/// Shuffles come from the task's seed, so that a task gives the same bits each time on one machine.
/// Machines with other instruction sets differ by rounding.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "tensor/safetensors.h"
#include "trainer/trainer.h"

namespace fl::trainer {

/// True for "mlp" and "softmax".
bool IsBuiltin(std::string_view name);

/// The trainer of that name. kNotFound names those that exist.
base::Result<std::unique_ptr<Trainer>> MakeBuiltin(std::string_view name);

/// `builtin: {architecture, layers, seed}` of a FederatedModel.
struct BuiltinModel {
  std::string architecture;     ///< "mlp" or "softmax"
  std::vector<int64_t> layers;  ///< widths from features to classes, e.g. {784, 200, 200, 10}
  uint64_t seed = 0;
};

/// Initial weights: weights and biases uniform in ±1/sqrt(fan_in), PyTorch's default for nn.Linear,
/// from base::SeededRandom({seed, layer}): the same bytes everywhere. kInvalidArgument names what
/// is wrong with the architecture or its layers.
base::Result<std::vector<tensor::Tensor>> InitialWeights(const BuiltinModel& model);
/// The same as a safetensors file.
base::Result<tensor::FileSummary> WriteInitialModel(const BuiltinModel& model,
                                                    const base::Path& path);

/// The instruction sets that this machine can run, best first: of "x86-64-v3" and "baseline".
std::vector<std::string> InstructionSets();
/// Uses the named one from here on (for tests and benchmarks). kNotFound. Not thread-safe.
base::Status UseInstructionSet(std::string_view name);

}  // namespace fl::trainer
