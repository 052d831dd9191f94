#pragma once

/// FederatedClient: a holder of data.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spec/enum.h"
#include "spec/metadata.h"

namespace fl::spec {

enum class ClientType {
  kAgent,  ///< a long-running fl-agentd that dials in; known by its public key
  kPod,    ///< the operator runs a pod for each job
};
template <>
struct EnumTable<ClientType> {
  static constexpr std::array<std::string_view, 2> kNames{"Agent", "Pod"};
};

struct DatasetRef {
  std::string uri;  ///< see dataset_uri.h
  friend bool operator==(const DatasetRef&, const DatasetRef&) = default;
};

/// An environment variable: a literal value, or Kubernetes' valueFrom as it was written.
struct EnvVar {
  std::string name;
  std::optional<std::string> value;
  Value value_from;
  friend bool operator==(const EnvVar&, const EnvVar&) = default;
};

/// The user's container. What only Kubernetes reads is kept as it was written (null: not set).
struct PodTemplate {
  std::optional<std::string> image;
  std::vector<std::string> command;
  std::vector<EnvVar> env;
  ResourceRequirements resources;
  std::map<std::string, std::string> node_selector;
  Value tolerations;    ///< list of maps
  Value volumes;        ///< list of maps with a name
  Value volume_mounts;  ///< list of maps with name and mountPath
  std::vector<NameRef> image_pull_secrets;
  std::optional<std::string> service_account_name;
  Value security_context;  ///< map
  friend bool operator==(const PodTemplate&, const PodTemplate&) = default;
};

struct ClientSpec {
  ClientType type = ClientType::kAgent;
  /// "ecdsa-sha2-nistp384 AAAA…" or "ssh-ed25519 AAAA…"; always set where the type is Agent.
  std::optional<std::string> public_key;
  std::optional<DatasetRef> dataset;
  bool fenced = false;  ///< takes part in no round
  std::optional<PodTemplate> pod;
  friend bool operator==(const ClientSpec&, const ClientSpec&) = default;
};

struct FederatedClient {
  static constexpr std::string_view kKind = "FederatedClient";
  ObjectMeta metadata;
  ClientSpec spec;
  friend bool operator==(const FederatedClient&, const FederatedClient&) = default;
};

}  // namespace fl::spec
