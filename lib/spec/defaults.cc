#include "spec/defaults.h"

namespace fl::spec {
namespace {

template <typename T, typename U>
void Default(std::optional<T>& field, U value) {
  if (!field) field = T(std::move(value));
}

Fraction Decimal(std::string_view text) { return Fraction::Parse(text).value(); }

}  // namespace

void ApplyDefaults(FederatedModel& model) {
  if (model.spec.initial.builtin) Default(model.spec.initial.builtin->seed, 0);
  AggregatorTemplate& aggregator = model.spec.aggregator;
  Default(aggregator.service.type, ServiceType::kClusterIP);
  Default(aggregator.storage.size, Quantity{"10Gi"});
  Default(aggregator.storage.reclaim_policy, ReclaimPolicy::kRetain);
  Default(model.spec.promotion.policy, PromotionPolicy::kManual);
}

void ApplyDefaults(FederatedClient& /*client*/) {}

void ApplyDefaults(FederatedLearningJob& job) {
  JobSpec& spec = job.spec;
  Selection& selection = spec.selection;
  Default(selection.policy, SelectionPolicy::kRandom);
  if (*selection.policy == SelectionPolicy::kPoisson) {
    Default(selection.quorum, 1);
  } else if (selection.clients_per_round) {
    Default(selection.quorum, *selection.clients_per_round);
  }

  Default(spec.round_policy.mode, RoundMode::kSynchronous);
  Default(spec.round_policy.deadline_seconds, 600);
  Default(spec.round_policy.on_missed_quorum, OnMissedQuorum::kRetry);
  Default(spec.round_policy.max_retries, 3);

  Default(spec.aggregation.algorithm, "FedAvg");

  const bool elsewhere = spec.evaluation.test_dataset || spec.privacy.differential_privacy;
  Default(spec.evaluation.clients, elsewhere ? EvaluationClients::kNone : EvaluationClients::kAll);

  if (spec.convergence && spec.convergence->patience) {
    Default(spec.convergence->min_delta, Decimal("0"));
  }
  if (spec.privacy.secure_aggregation) {
    SecureAggregation& masking = *spec.privacy.secure_aggregation;
    Default(masking.corrupt_fraction, Decimal("0.1"));
    Default(masking.drop_fraction, Decimal("0.1"));
    Default(masking.clip_range, Decimal("8"));
    Default(masking.bits, 32);
    Default(masking.max_weight, 10'000);
  }
  if (spec.privacy.differential_privacy) {
    Default(spec.privacy.differential_privacy->accountant, PrivacyAccountant::kRdp);
  }
}

void ApplyDefaults(Object& object) {
  std::visit([](auto& each) { ApplyDefaults(each); }, object);
}

}  // namespace fl::spec
