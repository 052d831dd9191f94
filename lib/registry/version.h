#pragma once

/// What the registry knows about a version of a model.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/ids.h"

namespace fl::registry {

/// A version by number and by content.
struct VersionRef {
  base::VersionNumber version;
  base::Digest manifest;
  friend bool operator==(const VersionRef&, const VersionRef&) = default;
};

/// Differential privacy spent up to and with a version, over all jobs of its model. Without noise
/// epsilon is infinite.
struct PrivacySpent {
  double epsilon = 0;
  double delta = 0;
  friend bool operator==(const PrivacySpent&, const PrivacySpent&) = default;
};

struct VersionInfo {
  base::VersionNumber version;
  base::Digest manifest;  ///< digest of its OCI manifest: the identity of the version
  base::Digest weights;   ///< digest of the safetensors file
  uint64_t weights_size = 0;
  std::optional<base::Digest> state;  ///< of the server optimiser's state, where there is one
  uint64_t state_size = 0;
  std::optional<VersionRef> parent;  ///< what training went on from; none for an initial model
  base::JobName job;                 ///< empty for an initial model
  base::RoundNumber round;           ///< 0 for an initial model
  std::string algorithm;             ///< e.g. "FedAvg"; empty for an initial model
  int64_t contributors = 0;          ///< how many clients, never which
  std::map<std::string, double> metrics;
  std::optional<PrivacySpent> privacy;
  std::string software;        ///< who wrote it, e.g. "fl 0.1.0"
  base::Digest config_digest;  ///< of the job's specification; empty where none
  base::Time created;
  bool pruned = false;  ///< removed by retention: only this record is left
};

/// A file to be stored. Where `digest` (with `size`) is known from writing it, it is not read
/// again.
struct SourceFile {
  base::Path path;
  std::optional<base::Digest> digest;
  uint64_t size = 0;  ///< used with `digest` only
};

/// A new version.
struct PublishRequest {
  /// The number it is to have: the latest plus one, or 0 in an empty registry. None: the next.
  std::optional<base::VersionNumber> version;
  std::optional<VersionRef> parent;
  base::JobName job;
  base::RoundNumber round;
  std::string algorithm;
  int64_t contributors = 0;
  std::map<std::string, double> metrics;  ///< finite
  std::optional<PrivacySpent> privacy;
  base::Digest config_digest;
  SourceFile weights;
  std::optional<SourceFile> state;
};

/// How a job ended.
struct FinishedJob {
  base::JobName job;
  base::Digest config_digest;  ///< of the job's specification, so that an edited job is told apart
  std::string outcome;         ///< "Succeeded" or "Failed"
  std::string reason;          ///< e.g. "RoundsCompleted"
  std::optional<base::VersionNumber> version;  ///< the last it published
  base::Time time;                             ///< set by the registry
  friend bool operator==(const FinishedJob&, const FinishedJob&) = default;
};

}  // namespace fl::registry
