#pragma once

/// FederatedLearningJob: the rounds that train a model.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spec/enum.h"
#include "spec/fraction.h"
#include "spec/metadata.h"
#include "spec/selector.h"
#include "spec/value.h"

namespace fl::spec {

/// What trains at each client: exactly one of `builtin`, `name`, or `image` and/or `command`.
struct TrainerSpec {
  std::optional<std::string> builtin;  ///< "mlp" or "softmax"
  std::optional<std::string> name;     ///< looked up in each agent's own configuration
  std::optional<std::string> image;
  std::vector<std::string> command;
  /// Handed to the trainer as it stands; the scalars keep their types.
  Value::Map config;
  friend bool operator==(const TrainerSpec&, const TrainerSpec&) = default;
};

enum class SelectionPolicy {
  kRandom,   ///< `clientsPerRound` of the clients, uniformly without replacement (all if left out)
  kPoisson,  ///< each client by itself, with probability `samplingRate`
};
template <>
struct EnumTable<SelectionPolicy> {
  static constexpr std::array<std::string_view, 2> kNames{"Random", "Poisson"};
};

struct Selection {
  LabelSelector client_selector;
  std::optional<SelectionPolicy> policy;
  std::optional<int64_t> clients_per_round;
  std::optional<int64_t> quorum;  ///< updates without which a round is not aggregated
  std::optional<int64_t> seed;
  std::optional<Fraction> sampling_rate;
  std::optional<int64_t> population;
  friend bool operator==(const Selection&, const Selection&) = default;
};

enum class RoundMode { kSynchronous };
template <>
struct EnumTable<RoundMode> {
  static constexpr std::array<std::string_view, 1> kNames{"Synchronous"};
};
enum class OnMissedQuorum { kRetry, kFail };
template <>
struct EnumTable<OnMissedQuorum> {
  static constexpr std::array<std::string_view, 2> kNames{"Retry", "Fail"};
};

struct RoundPolicy {
  std::optional<RoundMode> mode;
  std::optional<int64_t> deadline_seconds;
  std::optional<OnMissedQuorum> on_missed_quorum;
  std::optional<int64_t> max_retries;  ///< of one round
  friend bool operator==(const RoundPolicy&, const RoundPolicy&) = default;
};

struct Aggregation {
  std::optional<std::string> algorithm;  ///< a name of algorithms.h
  /// As written, checked against algorithms.h: decimal numbers as in Fraction, "true" or "false".
  std::map<std::string, std::string> parameters;
  std::optional<std::string> root_dataset;  ///< URI of the server's own clean data, for FLTrust
  friend bool operator==(const Aggregation&, const Aggregation&) = default;
};

enum class SecureAggregationProtocol { kSecAggPlus };
template <>
struct EnumTable<SecureAggregationProtocol> {
  static constexpr std::array<std::string_view, 1> kNames{"SecAggPlus"};
};

struct SecureAggregation {
  SecureAggregationProtocol protocol = SecureAggregationProtocol::kSecAggPlus;
  std::optional<int64_t> threshold;
  std::optional<Fraction> corrupt_fraction;
  std::optional<Fraction> drop_fraction;
  std::optional<Fraction> clip_range;  ///< values are clipped to [-clipRange, clipRange]
  std::optional<int64_t> bits;         ///< of a masked number
  std::optional<int64_t> max_weight;   ///< a client with more samples counts as this many
  friend bool operator==(const SecureAggregation&, const SecureAggregation&) = default;
};

enum class PrivacyMechanism { kCentral, kDistributed, kLocal };
template <>
struct EnumTable<PrivacyMechanism> {
  static constexpr std::array<std::string_view, 3> kNames{"Central", "Distributed", "Local"};
};
enum class PrivacyAccountant { kRdp, kPld };
template <>
struct EnumTable<PrivacyAccountant> {
  static constexpr std::array<std::string_view, 2> kNames{"RDP", "PLD"};
};

struct DifferentialPrivacy {
  PrivacyMechanism mechanism = PrivacyMechanism::kCentral;
  Fraction clip_norm;
  Fraction noise_multiplier;
  std::optional<Fraction> epsilon;  ///< the job ends before it spends more
  Fraction delta;
  std::optional<PrivacyAccountant> accountant;
  friend bool operator==(const DifferentialPrivacy&, const DifferentialPrivacy&) = default;
};

struct Privacy {
  std::optional<SecureAggregation> secure_aggregation;
  std::optional<DifferentialPrivacy> differential_privacy;
  friend bool operator==(const Privacy&, const Privacy&) = default;
};

enum class EvaluationClients { kAll, kNone };
template <>
struct EnumTable<EvaluationClients> {
  static constexpr std::array<std::string_view, 2> kNames{"All", "None"};
};

struct Evaluation {
  /// Who evaluates each candidate. Under differential privacy nothing of it leaves a client.
  std::optional<EvaluationClients> clients;
  std::optional<std::string> test_dataset;  ///< evaluated by the aggregator
  friend bool operator==(const Evaluation&, const Evaluation&) = default;
};

enum class ConvergenceMode { kMax, kMin };
template <>
struct EnumTable<ConvergenceMode> {
  static constexpr std::array<std::string_view, 2> kNames{"Max", "Min"};
};

/// The job succeeds early when `metric` reaches `target`, or has not got better by more than
/// `minDelta` for `patience` rounds. At least one of the two is set.
struct Convergence {
  std::string metric;
  ConvergenceMode mode = ConvergenceMode::kMax;
  std::optional<Fraction> target;
  std::optional<int64_t> patience;
  std::optional<Fraction> min_delta;
  friend bool operator==(const Convergence&, const Convergence&) = default;
};

struct JobSpec {
  NameRef model_ref;
  int64_t rounds = 0;
  TrainerSpec trainer;
  Selection selection;
  RoundPolicy round_policy;
  Aggregation aggregation;
  Privacy privacy;
  Evaluation evaluation;
  std::optional<Convergence> convergence;
  bool suspend = false;
  bool aborted = false;  ///< only from false to true
  int64_t attempt = 0;   ///< `retry` increments it
  std::optional<int64_t> ttl_seconds_after_finished;
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

struct FederatedLearningJob {
  static constexpr std::string_view kKind = "FederatedLearningJob";
  ObjectMeta metadata;
  JobSpec spec;
  friend bool operator==(const FederatedLearningJob&, const FederatedLearningJob&) = default;
};

}  // namespace fl::spec
