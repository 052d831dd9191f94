// No include guard and no header of its own: the body of kernel_<set>.cc, which defines
// FL_KERNELS (name of the table), FL_KERNEL_NAME (its text) and Eigen (a namespace of its own, so
// that the linker cannot take one instruction set's code of a template for another's).
//
// Nothing of the standard library that the compiler might put out of line may be used here; the
// test KernelSymbols checks the objects.

#include <Eigen/Core>

#include "trainer/builtin/kernel.h"

namespace fl::trainer::builtin {
namespace {

// Eigen's matrices are column-major here: a row-major [rows, columns] is [columns x rows].
using Matrix = Eigen::Map<Eigen::MatrixXf>;
using ConstMatrix = Eigen::Map<const Eigen::MatrixXf>;
using Vector = Eigen::Map<Eigen::VectorXf>;
using ConstVector = Eigen::Map<const Eigen::VectorXf>;

/// Outputs of all layers into `scratch`, one after another; ReLU on all but the last, which are
/// left as logits. Returns them.
float* Forward(const Network& network, const float* parameters, float* scratch, const float* values,
               int64_t rows) {
  const float* input = values;
  float* output = scratch;
  for (size_t i = 0; i < network.layer_count; ++i) {
    const Layer& layer = network.layers[i];
    if (i > 0) output += network.layers[i - 1].outputs * rows;
    const ConstMatrix x(input, layer.inputs, rows);
    const ConstMatrix weight(parameters + layer.weight, layer.inputs, layer.outputs);
    const ConstVector bias(parameters + layer.bias, layer.outputs);
    Matrix y(output, layer.outputs, rows);
    y.noalias() = weight.transpose() * x;
    y.colwise() += bias;
    if (i + 1 < network.layer_count) y = y.cwiseMax(0.0F);
    input = output;
  }
  return output;
}

/// Cross-entropy of one row of logits; leaves softmax(logits) in their place.
double SoftmaxLoss(float* logits, int64_t classes, int32_t label) {
  Vector z(logits, classes);
  z.array() -= z.maxCoeff();
  const float own = z[label];
  z = z.array().exp();
  const float sum = z.sum();
  z /= sum;
  return static_cast<double>(__builtin_logf(sum)) - static_cast<double>(own);
}

/// w -= lr (g + weight_decay w + mu (w - global)), g = x delta^T, or through the velocity.
template <typename Parameters, typename Gradient>
void Update(const SgdStep& step, size_t offset, Parameters parameters, const Gradient& gradient) {
  using Constant = Eigen::Map<const typename Parameters::PlainObject>;
  const auto add_penalties = [&](auto& target, float scale) {
    if (step.weight_decay != 0) target += scale * step.weight_decay * parameters;
    if (step.mu != 0 && step.global != nullptr) {
      const Constant global(step.global + offset, parameters.rows(), parameters.cols());
      target += scale * step.mu * (parameters - global);
    }
  };
  if (step.velocity != nullptr) {
    Parameters velocity(step.velocity + offset, parameters.rows(), parameters.cols());
    velocity *= step.momentum;
    add_penalties(velocity, 1.0F);
    velocity.noalias() += gradient;
    parameters -= step.learning_rate * velocity;
  } else {
    // Element by element, so reading and writing the same vector is right.
    add_penalties(parameters, -step.learning_rate);
    parameters.noalias() -= step.learning_rate * gradient;
  }
}

double Train(const Network& network, const SgdStep& step, const float* values,
             const int32_t* labels, int64_t rows) {
  float* const logits = Forward(network, step.parameters, step.scratch, values, rows);
  const Layer& last = network.layers[network.layer_count - 1];
  double loss = 0;
  for (int64_t row = 0; row < rows; ++row) {
    float* const z = logits + row * last.outputs;
    loss += SoftmaxLoss(z, last.outputs, labels[row]);
    z[labels[row]] -= 1.0F;  // now the error of this row
  }
  Matrix(logits, last.outputs, rows) /= static_cast<float>(rows);

  size_t outputs_before = 0;
  for (size_t i = 0; i + 1 < network.layer_count; ++i) {
    outputs_before += static_cast<size_t>(network.layers[i].outputs * rows);
  }
  // Errors of hidden layers go behind the outputs of all layers.
  float* errors = step.scratch + outputs_before + last.outputs * rows;
  float* error = logits;
  for (size_t i = network.layer_count; i-- > 0;) {
    const Layer& layer = network.layers[i];
    const ConstMatrix delta(error, layer.outputs, rows);
    const float* input = values;
    float* next_error = nullptr;
    if (i > 0) {
      outputs_before -= static_cast<size_t>(layer.inputs * rows);
      input = step.scratch + outputs_before;
      next_error = errors;
      errors += layer.inputs * rows;
      // Before the weights change.
      const ConstMatrix weight(step.parameters + layer.weight, layer.inputs, layer.outputs);
      Matrix below(next_error, layer.inputs, rows);
      below.noalias() = weight * delta;
      below.array() *= (ConstMatrix(input, layer.inputs, rows).array() > 0.0F).cast<float>();
    }
    const ConstMatrix x(input, layer.inputs, rows);
    Update(step, layer.weight, Matrix(step.parameters + layer.weight, layer.inputs, layer.outputs),
           x * delta.transpose());
    Update(step, layer.bias, Vector(step.parameters + layer.bias, layer.outputs, 1),
           delta.rowwise().sum());
    error = next_error;
  }
  return loss;
}

void Evaluate(const Network& network, const float* parameters, float* scratch, const float* values,
              const int32_t* labels, int64_t rows, double* loss, int64_t* correct) {
  float* const logits = Forward(network, parameters, scratch, values, rows);
  const int64_t classes = network.layers[network.layer_count - 1].outputs;
  for (int64_t row = 0; row < rows; ++row) {
    float* const z = logits + row * classes;
    Eigen::Index best = 0;
    Vector(z, classes).maxCoeff(&best);
    if (best == labels[row]) ++*correct;
    *loss += SoftmaxLoss(z, classes, labels[row]);
  }
}

}  // namespace

const Kernels FL_KERNELS = {FL_KERNEL_NAME, &Train, &Evaluate};

}  // namespace fl::trainer::builtin
