#include "registry/internal/artifact.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "registry/internal/stored_json.h"

namespace fl::registry::internal {
namespace {

using nlohmann::json;

// JSON has no infinity; an epsilon without noise is one.
json NumberToJson(double value) {
  if (std::isinf(value)) return "Infinity";
  return value;
}

json BlobToJson(const base::Digest& digest, uint64_t size) {
  return {{"digest", digest.ToString()}, {"size", size}};
}

}  // namespace

const Descriptor* Artifact::FindLayer(std::string_view type) const {
  for (const Descriptor& layer : layers) {
    if (layer.media_type == type) return &layer;
  }
  return nullptr;
}

json DescriptorToJson(const Descriptor& descriptor) {
  return {{"mediaType", descriptor.media_type},
          {"digest", descriptor.digest.ToString()},
          {"size", descriptor.size}};
}

base::Result<Descriptor> DescriptorFromJson(const json& value, const std::string& where) {
  StoredFields fields(value, where);
  Descriptor descriptor;
  descriptor.media_type = fields.String("mediaType");
  descriptor.digest = fields.Digest("digest");
  descriptor.size = static_cast<uint64_t>(fields.Count("size"));
  FL_RETURN_IF_ERROR(fields.status());
  return descriptor;
}

std::string FormatArtifact(const Artifact& artifact) {
  json value = {{"schemaVersion", 2},
                {"mediaType", artifact.media_type},
                {"config", DescriptorToJson(artifact.config)},
                {"layers", json::array()}};
  if (!artifact.artifact_type.empty()) value["artifactType"] = artifact.artifact_type;
  for (const Descriptor& layer : artifact.layers) {
    value["layers"].push_back(DescriptorToJson(layer));
  }
  if (!artifact.annotations.empty()) value["annotations"] = artifact.annotations;
  return base::DumpJson(value);
}

base::Result<Artifact> ParseArtifact(std::string_view text, const std::string& where) {
  FL_ASSIGN_OR_RETURN(const json value, ParseStored(text, where));
  StoredFields fields(value, where);
  Artifact artifact;
  if (fields.Has("mediaType")) artifact.media_type = fields.String("mediaType");
  if (fields.Has("artifactType")) artifact.artifact_type = fields.String("artifactType");
  if (fields.Has("manifests")) {
    for (const json& item : fields.Array("manifests")) {
      FL_ASSIGN_OR_RETURN(Descriptor child, DescriptorFromJson(item, where + ": manifest"));
      artifact.manifests.push_back(std::move(child));
    }
    FL_RETURN_IF_ERROR(fields.status());
    return artifact;
  }
  const json& config = fields.Object("config");
  const json& layers = fields.Array("layers");
  FL_RETURN_IF_ERROR(fields.status());
  FL_ASSIGN_OR_RETURN(artifact.config, DescriptorFromJson(config, where + ": config"));
  for (const json& item : layers) {
    FL_ASSIGN_OR_RETURN(Descriptor layer, DescriptorFromJson(item, where + ": layer"));
    artifact.layers.push_back(std::move(layer));
  }
  if (fields.Has("annotations")) {
    const json& annotations = fields.Object("annotations");
    StoredFields texts(annotations, where + ": annotations");
    for (const auto& [key, unused] : annotations.items()) {
      artifact.annotations[key] = texts.String(key);
    }
    FL_RETURN_IF_ERROR(texts.status());
  }
  FL_RETURN_IF_ERROR(fields.status());
  return artifact;
}

json VersionToJson(const VersionInfo& info) {
  json value = {{"version", info.version.value()},
                {"weights", BlobToJson(info.weights, info.weights_size)},
                {"job", info.job.str()},
                {"round", info.round.value()},
                {"algorithm", info.algorithm},
                {"contributors", info.contributors},
                {"metrics", json::object()},
                {"software", info.software},
                {"created", base::FormatTime(info.created)}};
  for (const auto& [name, metric] : info.metrics) value["metrics"][name] = NumberToJson(metric);
  if (info.state) value["state"] = BlobToJson(*info.state, info.state_size);
  if (info.parent) {
    value["parent"] = {{"version", info.parent->version.value()},
                       {"manifest", info.parent->manifest.ToString()}};
  }
  if (info.privacy) {
    value["privacy"] = {{"epsilon", NumberToJson(info.privacy->epsilon)},
                        {"delta", NumberToJson(info.privacy->delta)}};
  }
  if (!info.config_digest.empty()) value["configDigest"] = info.config_digest.ToString();
  return value;
}

base::Result<VersionInfo> VersionFromJson(const json& value, const std::string& where) {
  StoredFields fields(value, where);
  VersionInfo info;
  info.version = base::VersionNumber(fields.Count("version"));
  StoredFields weights(fields.Object("weights"), where + ": weights");
  info.job = base::JobName(fields.String("job"));
  info.round = base::RoundNumber(fields.Count("round"));
  info.algorithm = fields.String("algorithm");
  info.contributors = fields.Count("contributors");
  info.software = fields.String("software");
  info.created = fields.Time("created");
  if (fields.Has("configDigest")) info.config_digest = fields.Digest("configDigest");
  const json& metrics = fields.Object("metrics");
  FL_RETURN_IF_ERROR(fields.status());

  info.weights = weights.Digest("digest");
  info.weights_size = static_cast<uint64_t>(weights.Count("size"));
  FL_RETURN_IF_ERROR(weights.status());
  StoredFields numbers(metrics, where + ": metrics");
  for (const auto& [name, unused] : metrics.items()) info.metrics[name] = numbers.Double(name);
  FL_RETURN_IF_ERROR(numbers.status());
  if (fields.Has("state")) {
    StoredFields state(fields.Object("state"), where + ": state");
    info.state = state.Digest("digest");
    info.state_size = static_cast<uint64_t>(state.Count("size"));
    FL_RETURN_IF_ERROR(state.status());
  }
  if (fields.Has("parent")) {
    StoredFields parent(fields.Object("parent"), where + ": parent");
    const base::VersionNumber number(parent.Count("version"));
    info.parent = VersionRef{number, parent.Digest("manifest")};
    FL_RETURN_IF_ERROR(parent.status());
  }
  if (fields.Has("privacy")) {
    StoredFields privacy(fields.Object("privacy"), where + ": privacy");
    const double epsilon = privacy.Double("epsilon");
    info.privacy = PrivacySpent{epsilon, privacy.Double("delta")};
    FL_RETURN_IF_ERROR(privacy.status());
  }
  FL_RETURN_IF_ERROR(fields.status());
  return info;
}

std::string FormatConfig(const VersionInfo& info) {
  // Labels are what `skopeo inspect` shows of a version.
  json labels = {{"dev.kubefl.version", std::to_string(info.version.value())},
                 {"dev.kubefl.contributors", std::to_string(info.contributors)}};
  if (!info.job.empty()) {
    labels["dev.kubefl.job"] = info.job.str();
    labels["dev.kubefl.round"] = std::to_string(info.round.value());
    labels["dev.kubefl.algorithm"] = info.algorithm;
  }
  if (info.parent) {
    labels["dev.kubefl.parent"] =
        VersionTag(info.parent->version) + "@" + info.parent->manifest.ToString();
  }
  for (const auto& [name, metric] : info.metrics) {
    labels["dev.kubefl.metric." + name] = base::DumpJson(NumberToJson(metric));
  }
  json diff_ids = {info.weights.ToString()};
  if (info.state) diff_ids.push_back(info.state->ToString());
  return base::DumpJson(json{{"created", base::FormatTime(info.created)},
                             {"architecture", "unknown"},
                             {"os", "unknown"},
                             {"config", {{"Labels", std::move(labels)}}},
                             {"rootfs", {{"type", "layers"}, {"diff_ids", std::move(diff_ids)}}},
                             {"model", VersionToJson(info)}});
}

base::Result<VersionInfo> ParseConfig(std::string_view text, const std::string& where) {
  FL_ASSIGN_OR_RETURN(const json value, ParseStored(text, where));
  StoredFields fields(value, where);
  const json& model = fields.Object("model");
  FL_RETURN_IF_ERROR(fields.status());
  return VersionFromJson(model, where + ": model");
}

Artifact MakeVersionArtifact(const VersionInfo& info, const Descriptor& config) {
  Artifact artifact;
  artifact.artifact_type = kModelArtifactType;
  artifact.config = config;
  artifact.layers.push_back({std::string(kWeightsLayerType), info.weights, info.weights_size});
  if (info.state) {
    artifact.layers.push_back({std::string(kStateLayerType), *info.state, info.state_size});
  }
  artifact.annotations["org.opencontainers.image.created"] = base::FormatTime(info.created);
  artifact.annotations["org.opencontainers.image.version"] = VersionTag(info.version);
  return artifact;
}

std::string VersionTag(base::VersionNumber version) {
  return "v" + std::to_string(version.value());
}

std::optional<base::VersionNumber> ParseVersionTag(std::string_view tag) {
  if (!tag.starts_with('v')) return std::nullopt;
  tag.remove_prefix(1);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(tag.data(), tag.data() + tag.size(), number);
  if (error != std::errc() || end != tag.data() + tag.size() || number < 0 ||
      VersionTag(base::VersionNumber(number)).substr(1) != tag) {
    return std::nullopt;
  }
  return base::VersionNumber(number);
}

}  // namespace fl::registry::internal
