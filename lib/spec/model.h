#pragma once

/// FederatedModel: a model, where its versions are kept, and who serves its rounds.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/enum.h"
#include "spec/fraction.h"
#include "spec/metadata.h"

namespace fl::spec {

enum class Architecture { kMlp, kSoftmax };
template <>
struct EnumTable<Architecture> {
  static constexpr std::array<std::string_view, 2> kNames{"mlp", "softmax"};
};

/// A model of the built-in trainers, made from a seed.
struct BuiltinModel {
  Architecture architecture = Architecture::kMlp;
  /// Units by layer, from the input to the classes: {784, 200, 200, 10}; softmax has exactly two.
  std::vector<int64_t> layers;
  std::optional<int64_t> seed;
  friend bool operator==(const BuiltinModel&, const BuiltinModel&) = default;
};

/// Version 0. Exactly one of the two is set.
struct InitialModel {
  std::optional<std::string> uri;  ///< "file:digits-v0.safetensors"
  std::optional<BuiltinModel> builtin;
  friend bool operator==(const InitialModel&, const InitialModel&) = default;
};

struct RegistryRef {
  std::string uri;  ///< file:// s3:// oci://
  std::optional<NameRef> credentials_secret_ref;
  friend bool operator==(const RegistryRef&, const RegistryRef&) = default;
};

enum class ServiceType { kClusterIP, kNodePort, kLoadBalancer };
template <>
struct EnumTable<ServiceType> {
  static constexpr std::array<std::string_view, 3> kNames{"ClusterIP", "NodePort", "LoadBalancer"};
};

struct AggregatorService {
  std::optional<ServiceType> type;
  /// DNS names or IP addresses that agents outside use; they go into the certificate.
  std::vector<std::string> hostnames;
  friend bool operator==(const AggregatorService&, const AggregatorService&) = default;
};

enum class ReclaimPolicy { kRetain, kDelete };
template <>
struct EnumTable<ReclaimPolicy> {
  static constexpr std::array<std::string_view, 2> kNames{"Retain", "Delete"};
};

struct AggregatorStorage {
  std::optional<Quantity> size;
  std::optional<std::string> storage_class_name;
  std::optional<ReclaimPolicy> reclaim_policy;
  friend bool operator==(const AggregatorStorage&, const AggregatorStorage&) = default;
};

/// How the operator runs the model's aggregator; of no effect without a cluster.
struct AggregatorTemplate {
  AggregatorService service;
  std::optional<NameRef> tls_secret_ref;
  AggregatorStorage storage;
  ResourceRequirements resources;
  friend bool operator==(const AggregatorTemplate&, const AggregatorTemplate&) = default;
};

/// What may be spent over all jobs of the model.
struct PrivacyBudget {
  Fraction epsilon;
  Fraction delta;
  friend bool operator==(const PrivacyBudget&, const PrivacyBudget&) = default;
};

struct Retention {
  std::optional<int64_t> keep_last;
  friend bool operator==(const Retention&, const Retention&) = default;
};

enum class PromotionPolicy { kManual, kAutomatic };
template <>
struct EnumTable<PromotionPolicy> {
  static constexpr std::array<std::string_view, 2> kNames{"Manual", "Automatic"};
};

struct Promotion {
  std::optional<PromotionPolicy> policy;
  std::optional<int64_t> version;
  std::optional<std::string> metric;  ///< the gate: this metric must be …
  std::optional<Fraction> at_least;   ///< … at least this; both or neither
  /// The object that serves the model, as a map with `kind` and `name`; its further fields depend
  /// on the kind and are checked where they are used.
  Value target;
  std::optional<std::string> service_account_name;
  friend bool operator==(const Promotion&, const Promotion&) = default;
};

struct ModelSpec {
  std::optional<RegistryRef> registry;  ///< left out: the program's default place
  InitialModel initial;
  AggregatorTemplate aggregator;
  std::optional<PrivacyBudget> privacy_budget;
  Retention retention;
  Promotion promotion;
  std::optional<int64_t> version;  ///< the pin
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

struct FederatedModel {
  static constexpr std::string_view kKind = "FederatedModel";
  ObjectMeta metadata;
  ModelSpec spec;
  friend bool operator==(const FederatedModel&, const FederatedModel&) = default;
};

}  // namespace fl::spec
