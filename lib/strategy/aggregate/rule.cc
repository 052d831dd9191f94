#include "strategy/aggregate/rule.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

namespace fl::strategy {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

enum class Parameter {
  kServerLearningRate,
  kServerMomentum,
  kBeta1,
  kBeta2,
  kTau,
  kInitialAccumulator,
  kBiasCorrection,
  kMu,
};

/// What a parameter's number may be.
struct Range {
  double low;
  bool low_allowed;
  double high;  ///< itself not allowed
  std::string_view text;
};

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr Range kPositive = {0, false, kUnbounded, "greater than 0"};
constexpr Range kNotNegative = {0, true, kUnbounded, "0 or greater"};
constexpr Range kDecay = {0, true, 1, "0 or greater and less than 1"};

struct ParameterRow {
  Parameter parameter;
  std::string_view name;
  Range range;  ///< not for kBiasCorrection, which is true or false
};

constexpr std::array<ParameterRow, 8> kParameters = {{
    {Parameter::kServerLearningRate, "serverLearningRate", kPositive},
    {Parameter::kServerMomentum, "serverMomentum", kDecay},
    {Parameter::kBeta1, "beta1", kDecay},
    {Parameter::kBeta2, "beta2", kDecay},
    {Parameter::kTau, "tau", kPositive},
    {Parameter::kInitialAccumulator, "initialAccumulator", kNotNegative},
    {Parameter::kBiasCorrection, "biasCorrection", {}},
    {Parameter::kMu, "mu", kNotNegative},
}};

using enum Parameter;
constexpr Parameter kMeanParameters[] = {kServerLearningRate};
constexpr Parameter kProxParameters[] = {kServerLearningRate, kMu};
constexpr Parameter kMomentumParameters[] = {kServerLearningRate, kServerMomentum};
constexpr Parameter kAdagradParameters[] = {kServerLearningRate, kBeta1, kTau, kInitialAccumulator};
constexpr Parameter kAdamParameters[] = {kServerLearningRate, kBeta1,         kBeta2, kTau,
                                         kInitialAccumulator, kBiasCorrection};

struct AlgorithmRow {
  std::string_view name;
  Rule::Step step;
  bool normalizes_steps;
  std::span<const Parameter> parameters;
  double server_learning_rate;
  double beta1;
};

/// The table of algorithms, sorted by name.
constexpr std::array<AlgorithmRow, 7> kAlgorithms = {{
    {"FedAdagrad", Rule::Step::kAdagrad, false, kAdagradParameters, 0.1, 0},
    {"FedAdam", Rule::Step::kAdam, false, kAdamParameters, 0.1, 0.9},
    {"FedAvg", Rule::Step::kMean, false, kMeanParameters, 1, 0},
    {"FedAvgM", Rule::Step::kMomentum, false, kMomentumParameters, 1, 0},
    {"FedNova", Rule::Step::kMean, true, kMeanParameters, 1, 0},
    {"FedProx", Rule::Step::kMean, false, kProxParameters, 1, 0},
    {"FedYogi", Rule::Step::kYogi, false, kAdamParameters, 0.1, 0.9},
}};

/// Rules that are known to the field and to come, so that their names get a plain answer.
constexpr std::array<std::string_view, 5> kNotYet = {"Bulyan", "Krum", "Median", "MultiKrum",
                                                     "TrimmedMean"};

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

const ParameterRow& RowOf(Parameter parameter) {
  return kParameters.at(static_cast<size_t>(parameter));
}

Status BadValue(const AlgorithmRow& algorithm, std::string_view parameter, const std::string& text,
                std::string_view expected) {
  return InvalidArgument("parameter " + std::string(parameter) + " of " +
                         std::string(algorithm.name) + " is \"" + text + "\"; it must be " +
                         std::string(expected));
}

Result<double> ParseNumber(const AlgorithmRow& algorithm, const ParameterRow& row,
                           const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const Range& range = row.range;
  const bool parsed = error == std::errc() && end == text.data() + text.size();
  if (!parsed || !std::isfinite(value) || value < range.low ||
      (value == range.low && !range.low_allowed) || value >= range.high) {
    return BadValue(algorithm, row.name, text, "a number " + std::string(range.text));
  }
  return value;
}

Result<const AlgorithmRow*> FindAlgorithm(const std::string& name) {
  for (const AlgorithmRow& row : kAlgorithms) {
    if (row.name == name) return &row;
  }
  const std::string offered = "; offered are " + Join(KnownAlgorithms());
  for (const std::string_view later : kNotYet) {
    if (later == name) {
      return InvalidArgument("aggregation algorithm \"" + name + "\" is not offered yet" + offered);
    }
  }
  return InvalidArgument("unknown aggregation algorithm \"" + name + "\"" + offered);
}

}  // namespace

std::vector<std::string> KnownAlgorithms() {
  std::vector<std::string> names;
  for (const AlgorithmRow& row : kAlgorithms) names.emplace_back(row.name);
  return names;
}

bool Rule::needs_global() const {
  return keeps_state() || normalizes_steps_ || server_learning_rate_ != 1;
}

Result<Rule> MakeRule(const AlgorithmSpec& spec) {
  FL_ASSIGN_OR_RETURN(const AlgorithmRow* const algorithm, FindAlgorithm(spec.name));
  Rule rule;
  rule.name_ = spec.name;
  rule.step_ = algorithm->step;
  rule.normalizes_steps_ = algorithm->normalizes_steps;
  rule.server_learning_rate_ = algorithm->server_learning_rate;
  rule.server_momentum_ = 0.9;
  rule.beta1_ = algorithm->beta1;
  rule.beta2_ = 0.99;
  rule.tau_ = 0.001;
  std::optional<double> initial_accumulator;

  for (const auto& [name, text] : spec.parameters) {
    const Parameter* found = nullptr;
    std::vector<std::string> taken;
    for (const Parameter& parameter : algorithm->parameters) {
      taken.emplace_back(RowOf(parameter).name);
      if (RowOf(parameter).name == name) found = &parameter;
    }
    if (found == nullptr) {
      return InvalidArgument(spec.name + " has no parameter \"" + name + "\"; it takes " +
                             Join(taken));
    }
    if (*found == kBiasCorrection) {
      if (text != "true" && text != "false") {
        return BadValue(*algorithm, name, text, "true or false");
      }
      rule.bias_correction_ = text == "true";
      continue;
    }
    FL_ASSIGN_OR_RETURN(const double value, ParseNumber(*algorithm, RowOf(*found), text));
    switch (*found) {
      case kServerLearningRate:
        rule.server_learning_rate_ = value;
        break;
      case kServerMomentum:
        rule.server_momentum_ = value;
        break;
      case kBeta1:
        rule.beta1_ = value;
        break;
      case kBeta2:
        rule.beta2_ = value;
        break;
      case kTau:
        rule.tau_ = value;
        break;
      case kInitialAccumulator:
        initial_accumulator = value;
        break;
      case kMu:
        rule.mu_ = value;
        break;
      case kBiasCorrection:
        break;
    }
  }
  rule.initial_accumulator_ = initial_accumulator.value_or(rule.tau_ * rule.tau_);
  return rule;
}

}  // namespace fl::strategy
