#pragma once

/// OCI manifests: what a version and the records look like as artifacts.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "registry/store.h"
#include "registry/version.h"

namespace fl::registry::internal {

inline constexpr std::string_view kManifestType = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kIndexType = "application/vnd.oci.image.index.v1+json";
/// The config of a version is an image config with a member of ours, because `skopeo inspect` and
/// its kind refuse artifacts whose config is anything else.
inline constexpr std::string_view kImageConfigType = "application/vnd.oci.image.config.v1+json";
inline constexpr std::string_view kEmptyConfigType = "application/vnd.oci.empty.v1+json";
inline constexpr std::string_view kModelArtifactType = "application/vnd.kubefl.model.v1";
inline constexpr std::string_view kRecordsArtifactType = "application/vnd.kubefl.records.v1";
inline constexpr std::string_view kWeightsLayerType =
    "application/vnd.kubefl.model.layer.v1.safetensors";
inline constexpr std::string_view kStateLayerType =
    "application/vnd.kubefl.optimizer.layer.v1.safetensors";
inline constexpr std::string_view kRecordsLayerType =
    "application/vnd.kubefl.records.layer.v1.jsonl";

/// More than any registry takes for a manifest (4 MiB is customary).
inline constexpr uint64_t kManifestLimit = 4 << 20;
/// For a config blob.
inline constexpr uint64_t kConfigLimit = 4 << 20;

/// A manifest, or an index (then only `manifests` matters).
struct Artifact {
  std::string media_type{kManifestType};
  std::string artifact_type;
  Descriptor config;
  std::vector<Descriptor> layers;
  std::vector<Descriptor> manifests;
  std::map<std::string, std::string> annotations;

  /// The first layer of a type, or null.
  const Descriptor* FindLayer(std::string_view media_type) const;
};

nlohmann::json DescriptorToJson(const Descriptor& descriptor);
base::Result<Descriptor> DescriptorFromJson(const nlohmann::json& value, const std::string& where);

std::string FormatArtifact(const Artifact& artifact);
/// kDataLoss, with `where`.
base::Result<Artifact> ParseArtifact(std::string_view text, const std::string& where);

/// All of a VersionInfo but `manifest` and `pruned`: the member "model" of a version's config, and
/// (with "manifest") the data of its record.
nlohmann::json VersionToJson(const VersionInfo& info);
base::Result<VersionInfo> VersionFromJson(const nlohmann::json& value, const std::string& where);

/// The config blob of a version.
std::string FormatConfig(const VersionInfo& info);
/// kDataLoss, with `where`.
base::Result<VersionInfo> ParseConfig(std::string_view text, const std::string& where);

/// The manifest of a version whose config is `config`.
Artifact MakeVersionArtifact(const VersionInfo& info, const Descriptor& config);

/// "v3"
std::string VersionTag(base::VersionNumber version);
/// The number in "v3", if it is such a tag.
std::optional<base::VersionNumber> ParseVersionTag(std::string_view tag);

}  // namespace fl::registry::internal
