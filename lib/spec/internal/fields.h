#pragma once

/// The fields of the kinds, each once: name, member and bounds. A visitor walks them to read
/// (decode.cc), to write (encode.cc) and to check (check_fields.cc); the CRDs follow the same
/// table.
///
/// A visitor has `Required(name, member, rule)`, `Optional(name, member, rule)` and
/// `Ignored(names)` for what is read over.

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <type_traits>

#include "spec/internal/names.h"
#include "spec/types.h"

namespace fl::spec::internal {

/// Bounds of a field; which ones count follows from its type.
struct Rule {
  int64_t min = std::numeric_limits<int64_t>::min();  ///< whole numbers
  int64_t max = std::numeric_limits<int64_t>::max();
  double at_least = -std::numeric_limits<double>::infinity();  ///< fractions
  double more_than = -std::numeric_limits<double>::infinity();
  double at_most = std::numeric_limits<double>::infinity();
  double less_than = std::numeric_limits<double>::infinity();
  size_t max_length = 253;   ///< bytes of a string
  size_t max_items = 64;     ///< of a list or map
  TextCheck text = nullptr;  ///< of a string, each string of a list, each value of a map
  TextCheck key = nullptr;   ///< of each key of a map
};

inline constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
/// The largest whole number that every reader of JSON keeps exact.
inline constexpr int64_t kMaxExactInteger = (int64_t{1} << 53) - 1;
inline constexpr size_t kMaxUriLength = 1024;

inline constexpr Rule kNameRule{.max_length = 10'000, .text = CheckDnsLabel};
inline constexpr Rule kRefRule{.max_length = 10'000, .text = CheckDnsSubdomain};
inline constexpr Rule kDatasetRule{.max_length = kMaxUriLength, .text = CheckDatasetUri};

/// `S` is T or const T, so that one table serves readers and writers.
template <typename S, typename T>
concept Is = std::same_as<std::remove_const_t<S>, T>;

void Fields(auto& v, Is<ObjectMeta> auto& x) {
  v.Required("name", x.name, kNameRule);
  v.Optional("namespace", x.namespace_name, kNameRule);
  v.Optional("labels", x.labels, Rule{.text = CheckLabelValue, .key = CheckLabelKey});
  v.Optional("annotations", x.annotations,
             Rule{.max_length = 256 << 10, .max_items = 256, .key = CheckLabelKey});
  v.Ignored({"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
             "deletionGracePeriodSeconds", "managedFields", "ownerReferences", "finalizers",
             "selfLink", "generateName"});
}

void Fields(auto& v, Is<NameRef> auto& x) { v.Required("name", x.name, kRefRule); }

void Fields(auto& v, Is<ResourceRequirements> auto& x) {
  v.Optional("requests", x.requests, Rule{.key = CheckLabelKey});
  v.Optional("limits", x.limits, Rule{.key = CheckLabelKey});
}

// FederatedModel

void Fields(auto& v, Is<RegistryRef> auto& x) {
  v.Required("uri", x.uri, Rule{.max_length = kMaxUriLength, .text = CheckRegistryUri});
  v.Optional("credentialsSecretRef", x.credentials_secret_ref);
}

void Fields(auto& v, Is<BuiltinModel> auto& x) {
  v.Required("architecture", x.architecture);
  v.Required("layers", x.layers, Rule{.min = 1, .max = 10'000'000});
  v.Optional("seed", x.seed, Rule{.min = 0, .max = kMaxExactInteger});
}

void Fields(auto& v, Is<InitialModel> auto& x) {
  v.Optional("uri", x.uri, Rule{.max_length = kMaxUriLength, .text = CheckInitialUri});
  v.Optional("builtin", x.builtin);
}

void Fields(auto& v, Is<AggregatorService> auto& x) {
  v.Optional("type", x.type);
  v.Optional("hostnames", x.hostnames, Rule{.text = CheckHostname});
}

void Fields(auto& v, Is<AggregatorStorage> auto& x) {
  v.Optional("size", x.size);
  v.Optional("storageClassName", x.storage_class_name, kRefRule);
  v.Optional("reclaimPolicy", x.reclaim_policy);
}

void Fields(auto& v, Is<AggregatorTemplate> auto& x) {
  v.Optional("service", x.service);
  v.Optional("tlsSecretRef", x.tls_secret_ref);
  v.Optional("storage", x.storage);
  v.Optional("resources", x.resources);
}

void Fields(auto& v, Is<PrivacyBudget> auto& x) {
  v.Required("epsilon", x.epsilon, Rule{.more_than = 0});
  v.Required("delta", x.delta, Rule{.more_than = 0, .less_than = 1});
}

void Fields(auto& v, Is<Retention> auto& x) {
  v.Optional("keepLast", x.keep_last, Rule{.min = 1, .max = kMaxInt32});
}

void Fields(auto& v, Is<Promotion> auto& x) {
  v.Optional("policy", x.policy);
  v.Optional("version", x.version, Rule{.min = 0, .max = kMaxExactInteger});
  v.Optional("metric", x.metric, Rule{.text = CheckMetricName});
  v.Optional("atLeast", x.at_least);
  v.Optional("target", x.target);
  v.Optional("serviceAccountName", x.service_account_name, kRefRule);
}

void Fields(auto& v, Is<ModelSpec> auto& x) {
  v.Optional("registry", x.registry);
  v.Required("initial", x.initial);
  v.Optional("aggregator", x.aggregator);
  v.Optional("privacyBudget", x.privacy_budget);
  v.Optional("retention", x.retention);
  v.Optional("promotion", x.promotion);
  v.Optional("version", x.version, Rule{.min = 0, .max = kMaxExactInteger});
}

// FederatedClient

void Fields(auto& v, Is<DatasetRef> auto& x) { v.Required("uri", x.uri, kDatasetRule); }

void Fields(auto& v, Is<EnvVar> auto& x) {
  v.Required("name", x.name, Rule{.text = CheckEnvName});
  v.Optional("value", x.value, Rule{.max_length = 32 << 10, .text = CheckNoNul});
  v.Optional("valueFrom", x.value_from);
}

inline constexpr Rule kCommandRule{.max_length = 4096, .max_items = 256, .text = CheckNoNul};
inline constexpr Rule kImageRule{.max_length = 512, .text = CheckImage};

void Fields(auto& v, Is<PodTemplate> auto& x) {
  v.Optional("image", x.image, kImageRule);
  v.Optional("command", x.command, kCommandRule);
  v.Optional("env", x.env, Rule{.max_items = 256});
  v.Optional("resources", x.resources);
  v.Optional("nodeSelector", x.node_selector, Rule{.text = CheckLabelValue, .key = CheckLabelKey});
  v.Optional("tolerations", x.tolerations);
  v.Optional("volumes", x.volumes);
  v.Optional("volumeMounts", x.volume_mounts);
  v.Optional("imagePullSecrets", x.image_pull_secrets);
  v.Optional("serviceAccountName", x.service_account_name, kRefRule);
  v.Optional("securityContext", x.security_context);
}

void Fields(auto& v, Is<ClientSpec> auto& x) {
  v.Required("type", x.type);
  v.Optional("publicKey", x.public_key, Rule{.max_length = 1024, .text = CheckPublicKey});
  v.Optional("dataset", x.dataset);
  v.Optional("fenced", x.fenced);
  v.Optional("pod", x.pod);
}

// FederatedLearningJob

void Fields(auto& v, Is<TrainerSpec> auto& x) {
  v.Optional("builtin", x.builtin, Rule{.text = CheckBuiltinTrainer});
  v.Optional("name", x.name, kNameRule);
  v.Optional("image", x.image, kImageRule);
  v.Optional("command", x.command, kCommandRule);
  v.Optional("config", x.config, Rule{.max_items = 256});
}

void Fields(auto& v, Is<SelectorRequirement> auto& x) {
  v.Required("key", x.key, Rule{.max_length = 317, .text = CheckLabelKey});
  v.Required("operator", x.op);
  v.Optional("values", x.values, Rule{.max_items = 256, .text = CheckLabelValue});
}

void Fields(auto& v, Is<LabelSelector> auto& x) {
  v.Optional("matchLabels", x.match_labels, Rule{.text = CheckLabelValue, .key = CheckLabelKey});
  v.Optional("matchExpressions", x.match_expressions);
}

void Fields(auto& v, Is<Selection> auto& x) {
  v.Optional("clientSelector", x.client_selector);
  v.Optional("policy", x.policy);
  v.Optional("clientsPerRound", x.clients_per_round, Rule{.min = 1, .max = 1'000'000});
  v.Optional("quorum", x.quorum, Rule{.min = 1, .max = 1'000'000});
  v.Optional("seed", x.seed, Rule{.min = 0, .max = kMaxExactInteger});
  v.Optional("samplingRate", x.sampling_rate, Rule{.more_than = 0, .at_most = 1});
  v.Optional("population", x.population, Rule{.min = 1, .max = 1'000'000'000});
}

void Fields(auto& v, Is<RoundPolicy> auto& x) {
  v.Optional("mode", x.mode);
  v.Optional("deadlineSeconds", x.deadline_seconds, Rule{.min = 1, .max = 604'800});
  v.Optional("onMissedQuorum", x.on_missed_quorum);
  v.Optional("maxRetries", x.max_retries, Rule{.min = 0, .max = 1000});
}

void Fields(auto& v, Is<Aggregation> auto& x) {
  v.Optional("algorithm", x.algorithm, Rule{.text = CheckAlgorithm});
  v.Optional("parameters", x.parameters, Rule{.max_length = Fraction::kMaxLength});
  v.Optional("rootDataset", x.root_dataset, kDatasetRule);
}

void Fields(auto& v, Is<SecureAggregation> auto& x) {
  v.Required("protocol", x.protocol);
  v.Optional("threshold", x.threshold, Rule{.min = 1, .max = 1'000'000});
  v.Optional("corruptFraction", x.corrupt_fraction, Rule{.at_least = 0, .less_than = 0.5});
  v.Optional("dropFraction", x.drop_fraction, Rule{.at_least = 0, .less_than = 0.5});
  v.Optional("clipRange", x.clip_range, Rule{.more_than = 0});
  v.Optional("bits", x.bits, Rule{.min = 8, .max = 62});
  v.Optional("maxWeight", x.max_weight, Rule{.min = 1, .max = kMaxInt32});
}

void Fields(auto& v, Is<DifferentialPrivacy> auto& x) {
  v.Required("mechanism", x.mechanism);
  v.Required("clipNorm", x.clip_norm, Rule{.more_than = 0});
  v.Required("noiseMultiplier", x.noise_multiplier, Rule{.more_than = 0});
  v.Optional("epsilon", x.epsilon, Rule{.more_than = 0});
  v.Required("delta", x.delta, Rule{.more_than = 0, .less_than = 1});
  v.Optional("accountant", x.accountant);
}

void Fields(auto& v, Is<Privacy> auto& x) {
  v.Optional("secureAggregation", x.secure_aggregation);
  v.Optional("differentialPrivacy", x.differential_privacy);
}

void Fields(auto& v, Is<Evaluation> auto& x) {
  v.Optional("clients", x.clients);
  v.Optional("testDataset", x.test_dataset, kDatasetRule);
}

void Fields(auto& v, Is<Convergence> auto& x) {
  v.Required("metric", x.metric, Rule{.text = CheckMetricName});
  v.Required("mode", x.mode);
  v.Optional("target", x.target);
  v.Optional("patience", x.patience, Rule{.min = 1, .max = 100'000});
  v.Optional("minDelta", x.min_delta, Rule{.at_least = 0});
}

void Fields(auto& v, Is<JobSpec> auto& x) {
  v.Required("modelRef", x.model_ref);
  v.Required("rounds", x.rounds, Rule{.min = 1, .max = 100'000});
  v.Required("trainer", x.trainer);
  v.Optional("selection", x.selection);
  v.Optional("roundPolicy", x.round_policy);
  v.Optional("aggregation", x.aggregation);
  v.Optional("privacy", x.privacy);
  v.Optional("evaluation", x.evaluation);
  v.Optional("convergence", x.convergence);
  v.Optional("suspend", x.suspend);
  v.Optional("aborted", x.aborted);
  v.Optional("attempt", x.attempt, Rule{.min = 0, .max = kMaxInt32});
  v.Optional("ttlSecondsAfterFinished", x.ttl_seconds_after_finished,
             Rule{.min = 0, .max = kMaxInt32});
}

/// What is around the spec; apiVersion and kind are handled where the kind is chosen.
void Fields(auto& v, Is<FederatedModel> auto& x) {
  v.Ignored({"apiVersion", "kind", "status"});
  v.Required("metadata", x.metadata);
  v.Required("spec", x.spec);
}
void Fields(auto& v, Is<FederatedClient> auto& x) {
  v.Ignored({"apiVersion", "kind", "status"});
  v.Required("metadata", x.metadata);
  v.Required("spec", x.spec);
}
void Fields(auto& v, Is<FederatedLearningJob> auto& x) {
  v.Ignored({"apiVersion", "kind", "status"});
  v.Required("metadata", x.metadata);
  v.Required("spec", x.spec);
}

}  // namespace fl::spec::internal
