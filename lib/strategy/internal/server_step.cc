#include "strategy/internal/server_step.h"

#include <cmath>

namespace fl::strategy::internal {

namespace {

/// base to the power of exponent ≥ 1, by squaring: the same bits with every C library.
double Power(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 != 0) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace

std::vector<std::string_view> StateSlots(const Rule& rule) {
  switch (rule.step()) {
    case Rule::Step::kMean:
      return {};
    case Rule::Step::kMomentum:
      return {"m"};
    case Rule::Step::kAdagrad:
    case Rule::Step::kAdam:
    case Rule::Step::kYogi:
      return {"m", "v"};
  }
  return {};
}

ServerStep::ServerStep(const Rule& rule, double delta_scale, int64_t round)
    : rule_(rule), delta_scale_(delta_scale) {
  if (rule.bias_correction()) {
    m_correction_ = 1 - Power(rule.beta1(), round);
    v_correction_ = 1 - Power(rule.beta2(), round);
  }
}

bool ServerStep::is_identity() const {
  return rule_.step() == Rule::Step::kMean && rule_.server_learning_rate() == 1 &&
         delta_scale_ == 1;
}

double ServerStep::InitialState(size_t slot) const {
  return slot == 1 ? rule_.initial_accumulator() : 0;
}

void ServerStep::Apply(size_t count, const double* global, double* m, double* v,
                       double* values) const {
  const double rate = rule_.server_learning_rate();
  if (rule_.step() == Rule::Step::kMean) {
    const double scale = rate * delta_scale_;
    for (size_t i = 0; i < count; ++i) values[i] = global[i] + scale * (values[i] - global[i]);
    return;
  }
  if (rule_.step() == Rule::Step::kMomentum) {
    for (size_t i = 0; i < count; ++i) {
      m[i] = rule_.server_momentum() * m[i] + (values[i] - global[i]);
      values[i] = global[i] + rate * m[i];
    }
    return;
  }
  const double beta1 = rule_.beta1();
  const double beta2 = rule_.beta2();
  for (size_t i = 0; i < count; ++i) {
    const double delta = values[i] - global[i];
    const double square = delta * delta;
    m[i] = beta1 * m[i] + (1 - beta1) * delta;
    switch (rule_.step()) {
      case Rule::Step::kAdagrad:
        v[i] += square;
        break;
      case Rule::Step::kAdam:
        v[i] = beta2 * v[i] + (1 - beta2) * square;
        break;
      default:  // Yogi: towards the square by a step of its own size, whatever the distance
        if (v[i] > square) {
          v[i] -= (1 - beta2) * square;
        } else if (v[i] < square) {
          v[i] += (1 - beta2) * square;
        }
    }
    values[i] =
        global[i] + rate * (m[i] / m_correction_) / (std::sqrt(v[i] / v_correction_) + rule_.tau());
  }
}

}  // namespace fl::strategy::internal
