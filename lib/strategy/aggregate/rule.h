#pragma once

/// Which algorithms combine the updates of a round, and their parameters: one explicit table.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fl::strategy {

/// An algorithm as it is named in a job or on the command line. Values are text, e.g.
/// {"serverLearningRate": "0.1"}.
struct AlgorithmSpec {
  std::string name = "FedAvg";
  std::map<std::string, std::string> parameters;
};

/// Names of all algorithms offered, sorted.
std::vector<std::string> KnownAlgorithms();

/// How the weighted mean of a round's updates becomes the next model. With g the global model, Δ =
/// mean − g, η = serverLearningRate, everything elementwise in F64 and rounded once:
///
/// | name | next model | source |
/// |---|---|---|
/// | FedAvg | g + ηΔ; the mean itself where η = 1 | McMahan et al. 2017, algorithm 1 |
/// | FedProx | as FedAvg; `mu` is for the clients | Li et al. 2020, algorithm 2 |
/// | FedAvgM | m ← βm + Δ; g + ηm, with β = serverMomentum | Hsu et al. 2019, section 4.3 |
/// | FedAdagrad | m ← β₁m + (1−β₁)Δ; v ← v + Δ²; g + ηm/(√v + τ) | Reddi et al. 2021, algorithm 2 |
/// | FedAdam | m as above; v ← β₂v + (1−β₂)Δ²; the same step | same |
/// | FedYogi | m as above; v ← v − (1−β₂)Δ² sign(v − Δ²); the same step | same |
/// | FedNova | mean over n/τᵢ; g + η τ_eff Σ pᵢ(xᵢ − g)/τᵢ | Wang et al. 2020, eq. 6 with vanilla
/// SGD |
///
/// In FedNova τᵢ are a client's local steps, pᵢ = nᵢ/Σn, τ_eff = Σ pᵢτᵢ; with equal steps it is
/// FedAvg, bit for bit. With `biasCorrection` (FedAdam and FedYogi) m and v are divided by 1 − β₁ᵗ
/// and 1 − β₂ᵗ in the step, as in Kingma and Ba 2015; the default is without, as in Reddi et al.
///
/// m starts at 0 and v at `initialAccumulator` (τ² unless given). Defaults: serverLearningRate 1,
/// 0.1 for the adaptive ones; serverMomentum 0.9; beta1 0.9, 0 for FedAdagrad; beta2 0.99; tau
/// 0.001; biasCorrection false; mu 0.
///
/// Integer and boolean tensors take no step: they get the exact mean, weighted by samples.
class Rule {
 public:
  enum class Step { kMean, kMomentum, kAdagrad, kAdam, kYogi };

  const std::string& name() const { return name_; }
  Step step() const { return step_; }
  /// FedNova: clients are weighted by samples per local step.
  bool normalizes_steps() const { return normalizes_steps_; }
  /// A global model must be given: all but FedAvg and FedProx with serverLearningRate 1.
  bool needs_global() const;
  /// The algorithm remembers something from round to round, in a state file.
  bool keeps_state() const { return step_ != Step::kMean; }

  double server_learning_rate() const { return server_learning_rate_; }
  double server_momentum() const { return server_momentum_; }
  double beta1() const { return beta1_; }
  double beta2() const { return beta2_; }
  double tau() const { return tau_; }
  double initial_accumulator() const { return initial_accumulator_; }
  bool bias_correction() const { return bias_correction_; }
  /// FedProx's proximal coefficient, for the clients; 0 elsewhere.
  double mu() const { return mu_; }

 private:
  friend base::Result<Rule> MakeRule(const AlgorithmSpec& spec);
  Rule() = default;

  std::string name_;
  Step step_ = Step::kMean;
  bool normalizes_steps_ = false;
  double server_learning_rate_ = 1.0;
  double server_momentum_ = 0;
  double beta1_ = 0;
  double beta2_ = 0;
  double tau_ = 0;
  double initial_accumulator_ = 0;
  bool bias_correction_ = false;
  double mu_ = 0;
};

/// The rule for `spec`, defaults filled in. kInvalidArgument for an unknown algorithm (naming those
/// offered), a parameter it does not take (naming those it takes), or a value that is not a number
/// in range; NaN, infinities and numbers too small or too large for F64 (1e-400) never pass.
base::Result<Rule> MakeRule(const AlgorithmSpec& spec);

}  // namespace fl::strategy
