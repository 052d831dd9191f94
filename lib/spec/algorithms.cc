#include "spec/algorithms.h"

#include <algorithm>
#include <array>

namespace fl::spec {
namespace {

constexpr double kHuge = 1e9;

constexpr AlgorithmParameter kServerLearningRate{.name = "serverLearningRate",
                                                 .default_value = "1.0",
                                                 .maximum = kHuge,
                                                 .minimum_allowed = false};
constexpr AlgorithmParameter kAdaptiveLearningRate{.name = "serverLearningRate",
                                                   .default_value = "0.1",
                                                   .maximum = kHuge,
                                                   .minimum_allowed = false};
constexpr AlgorithmParameter kServerMomentum{
    .name = "serverMomentum", .default_value = "0.9", .maximum = 1, .maximum_allowed = false};
constexpr AlgorithmParameter kBeta1{
    .name = "beta1", .default_value = "0.9", .maximum = 1, .maximum_allowed = false};
constexpr AlgorithmParameter kBeta1Adagrad{
    .name = "beta1", .default_value = "0", .maximum = 1, .maximum_allowed = false};
constexpr AlgorithmParameter kBeta2{
    .name = "beta2", .default_value = "0.99", .maximum = 1, .maximum_allowed = false};
constexpr AlgorithmParameter kTau{
    .name = "tau", .default_value = "0.001", .maximum = kHuge, .minimum_allowed = false};
constexpr AlgorithmParameter kInitialAccumulator{.name = "initialAccumulator", .maximum = kHuge};
constexpr AlgorithmParameter kBiasCorrection{
    .name = "biasCorrection", .default_value = "false", .boolean = true};
constexpr AlgorithmParameter kMu{.name = "mu", .default_value = "0.01", .maximum = kHuge};
constexpr AlgorithmParameter kTrim{
    .name = "trim", .default_value = "0.1", .maximum = 0.5, .maximum_allowed = false};
constexpr AlgorithmParameter kByzantine{
    .name = "byzantine", .maximum = 1e6, .integer = true, .required = true};
constexpr AlgorithmParameter kKeep{.name = "keep", .minimum = 1, .maximum = 1e6, .integer = true};
constexpr AlgorithmParameter kClipNorm{
    .name = "clipNorm", .maximum = kHuge, .minimum_allowed = false, .required = true};
constexpr AlgorithmParameter kIterations{
    .name = "iterations", .default_value = "10", .minimum = 1, .maximum = 1000, .integer = true};
constexpr AlgorithmParameter kClippingIterations{
    .name = "iterations", .default_value = "1", .minimum = 1, .maximum = 1000, .integer = true};

constexpr std::array kFedAvg{kServerLearningRate};
constexpr std::array kFedAvgM{kServerLearningRate, kServerMomentum};
constexpr std::array kFedProx{kServerLearningRate, kMu};
constexpr std::array kFedAdagrad{kAdaptiveLearningRate, kBeta1Adagrad, kTau, kInitialAccumulator};
constexpr std::array kFedAdam{kAdaptiveLearningRate, kBeta1,         kBeta2, kTau,
                              kInitialAccumulator,   kBiasCorrection};
constexpr std::array kTrimmedMean{kServerLearningRate, kTrim};
constexpr std::array kKrum{kServerLearningRate, kByzantine};
constexpr std::array kMultiKrum{kServerLearningRate, kByzantine, kKeep};
constexpr std::array kGeometricMedian{kServerLearningRate, kIterations};
constexpr std::array kCenteredClipping{kServerLearningRate, kClipNorm, kClippingIterations};
constexpr std::array kNormClipping{kServerLearningRate, kClipNorm};

constexpr std::array kAlgorithms{
    Algorithm{.name = "FedAvg", .parameters = kFedAvg},
    Algorithm{.name = "FedAvgM", .parameters = kFedAvgM},
    Algorithm{.name = "FedProx", .parameters = kFedProx},
    Algorithm{.name = "FedAdagrad", .parameters = kFedAdagrad},
    Algorithm{.name = "FedAdam", .parameters = kFedAdam},
    Algorithm{.name = "FedYogi", .parameters = kFedAdam},
    Algorithm{.name = "FedNova", .parameters = kFedAvg, .needs_step_counts = true},
    Algorithm{.name = "Median", .parameters = kFedAvg, .needs_single_updates = true},
    Algorithm{.name = "TrimmedMean", .parameters = kTrimmedMean, .needs_single_updates = true},
    Algorithm{.name = "Krum", .parameters = kKrum, .needs_single_updates = true},
    Algorithm{.name = "MultiKrum", .parameters = kMultiKrum, .needs_single_updates = true},
    Algorithm{.name = "Bulyan", .parameters = kKrum, .needs_single_updates = true},
    Algorithm{
        .name = "GeometricMedian", .parameters = kGeometricMedian, .needs_single_updates = true},
    Algorithm{
        .name = "CenteredClipping", .parameters = kCenteredClipping, .needs_single_updates = true},
    Algorithm{.name = "NormClipping", .parameters = kNormClipping, .needs_single_updates = true},
    Algorithm{.name = "FLTrust",
              .parameters = kFedAvg,
              .needs_single_updates = true,
              .needs_root_dataset = true},
};

}  // namespace

std::span<const Algorithm> Algorithms() { return kAlgorithms; }

const Algorithm* FindAlgorithm(std::string_view name) {
  const auto found = std::find_if(kAlgorithms.begin(), kAlgorithms.end(),
                                  [name](const Algorithm& each) { return each.name == name; });
  return found == kAlgorithms.end() ? nullptr : &*found;
}

}  // namespace fl::spec
