#pragma once

/// The arithmetic of the built-in networks. It is compiled once for each instruction set
/// (kernel_*.cc from kernel.inc) and chosen when the program starts. Plain functions on memory of
/// the caller, so that those translation units share no code with the rest of the program. Float
/// memory starts at a multiple of 64 (aligned.h), so that the same input gives the same bits.

#include <cstddef>
#include <cstdint>

namespace fl::trainer::builtin {

/// One fully connected layer: y = W x + b. Row-major weight [outputs, inputs].
struct Layer {
  int64_t inputs = 0;
  int64_t outputs = 0;
  /// Where weight and bias start in the vector of all parameters.
  size_t weight = 0;
  size_t bias = 0;
};

struct Network {
  const Layer* layers = nullptr;
  size_t layer_count = 0;
};

/// One step of SGD. Null pointers leave their term out.
struct SgdStep {
  float* parameters = nullptr;
  const float* global = nullptr;  ///< of FedProx's proximal term
  float* velocity = nullptr;      ///< of momentum
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
  float mu = 0;
  /// ScratchFloats(network, batch) floats.
  float* scratch = nullptr;
};

/// Floats of scratch memory for a batch of `batch` rows: every layer's outputs, and their errors.
inline size_t ScratchFloats(const Network& network, int64_t batch) {
  size_t outputs = 0;
  for (size_t i = 0; i < network.layer_count; ++i) {
    outputs += static_cast<size_t>(network.layers[i].outputs);
  }
  return 2 * outputs * static_cast<size_t>(batch);
}

struct Kernels {
  const char* name;
  /// Forward, backward and update on one mini-batch: `values` [rows, inputs], `labels` [rows] below
  /// the last layer's outputs. Returns the sum of the rows' cross-entropy before the update.
  double (*train)(const Network& network, const SgdStep& step, const float* values,
                  const int32_t* labels, int64_t rows);
  /// Forward only: adds the rows' cross-entropy to `loss` and the number of right answers to
  /// `correct`. `scratch` as for `train`.
  void (*evaluate)(const Network& network, const float* parameters, float* scratch,
                   const float* values, const int32_t* labels, int64_t rows, double* loss,
                   int64_t* correct);
};

/// The one in use: the best, unless UseInstructionSet chose another.
const Kernels& ActiveKernels();

extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kX86V3Kernels;  ///< AVX2 and FMA
#endif

}  // namespace fl::trainer::builtin
