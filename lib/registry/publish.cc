#include <chrono>
#include <cmath>

#include "base/failpoint.h"
#include "registry/internal/artifact.h"
#include "registry/internal/snapshot.h"

namespace fl::registry {
namespace {

using base::Result;
using base::Status;

/// Fills in what the caller did not know of a file.
Status Measure(SourceFile& source) {
  if (source.digest) return base::OkStatus();
  FL_ASSIGN_OR_RETURN(const base::MappedFile file, base::MappedFile::Open(source.path));
  source.digest = base::Digest::Of(file.bytes());
  source.size = file.size();
  return base::OkStatus();
}

Status Validate(const PublishRequest& request) {
  if (request.version && request.version->value() < 0) {
    return base::InvalidArgument("versions count from 0, not from " +
                                 std::to_string(request.version->value()));
  }
  if (request.round.value() < 0 || request.contributors < 0) {
    return base::InvalidArgument("the round and the number of contributors cannot be negative");
  }
  for (const auto& [name, value] : request.metrics) {
    if (std::isfinite(value)) continue;
    return base::InvalidArgument("metric \"" + name + "\" is not finite");
  }
  // An infinite epsilon is one without noise; a delta is a probability.
  if (request.privacy && !(request.privacy->epsilon >= 0 && request.privacy->delta >= 0 &&
                           request.privacy->delta < 1)) {
    return base::InvalidArgument("the privacy spent is not an epsilon from 0 with a delta below 1");
  }
  return base::OkStatus();
}

bool SameVersion(const VersionInfo& info, const PublishRequest& request) {
  const std::optional<base::Digest> state =
      request.state ? request.state->digest : std::optional<base::Digest>();
  return info.job == request.job && info.round == request.round &&
         info.weights == *request.weights.digest && info.state == state;
}

}  // namespace

Result<VersionInfo> ModelRepository::Publish(const PublishRequest& request) {
  FL_RETURN_IF_ERROR(RequireWriter());
  FL_RETURN_IF_ERROR(Validate(request));
  PublishRequest measured = request;
  FL_RETURN_IF_ERROR(Measure(measured.weights));
  if (measured.state) FL_RETURN_IF_ERROR(Measure(*measured.state));
  return Write([&] { return PublishOnce(measured); });
}

Result<VersionInfo> ModelRepository::PublishOnce(const PublishRequest& request) {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  const internal::History& history = snapshot->history();
  const VersionInfo* latest = history.Latest();
  const base::VersionNumber next = latest ? latest->version.Next() : base::VersionNumber(0);

  const VersionInfo* existing = nullptr;
  if (request.version) {
    existing = history.Find(*request.version);
  } else if (latest != nullptr && !request.job.empty() && SameVersion(*latest, request)) {
    existing = latest;
  }
  if (existing != nullptr) {
    if (!SameVersion(*existing, request)) {
      return base::AlreadyExists("version " + std::to_string(existing->version.value()) +
                                 " is there already, from job \"" + existing->job.str() +
                                 "\" round " + std::to_string(existing->round.value()) +
                                 " with weights " + existing->weights.ToString());
    }
    FL_RETURN_IF_ERROR(DropStaged(request.weights.path));
    if (request.state) FL_RETURN_IF_ERROR(DropStaged(request.state->path));
    return *existing;
  }
  if (request.version && *request.version != next) {
    return base::FailedPrecondition("version " + std::to_string(request.version->value()) +
                                    " cannot be published: version " +
                                    std::to_string(next.value()) + " comes next");
  }
  if (request.parent) {
    const VersionInfo* parent = history.Find(request.parent->version);
    if (parent == nullptr || parent->manifest != request.parent->manifest) {
      return base::FailedPrecondition("the parent, version " +
                                      std::to_string(request.parent->version.value()) +
                                      " with manifest " + request.parent->manifest.ToString() +
                                      ", is not in " + store_->Name());
    }
  }

  VersionInfo info;
  info.version = next;
  info.weights = *request.weights.digest;
  info.weights_size = request.weights.size;
  if (request.state) {
    info.state = request.state->digest;
    info.state_size = request.state->size;
  }
  info.parent = request.parent;
  info.job = request.job;
  info.round = request.round;
  info.algorithm = request.algorithm;
  info.contributors = request.contributors;
  info.metrics = request.metrics;
  info.privacy = request.privacy;
  info.software = writer_->software;
  info.config_digest = request.config_digest;
  // As it will be read again.
  info.created = std::chrono::floor<std::chrono::milliseconds>(writer_->clock->Now());

  FL_RETURN_IF_ERROR(base::Failpoint("registry.publish.start"));
  FL_RETURN_IF_ERROR(store_->PutFile(request.weights.path, info.weights, info.weights_size));
  FL_RETURN_IF_ERROR(base::Failpoint("registry.publish.weights"));
  if (request.state) {
    FL_RETURN_IF_ERROR(store_->PutFile(request.state->path, *info.state, info.state_size));
    FL_RETURN_IF_ERROR(base::Failpoint("registry.publish.state"));
  }
  const std::string config_text = internal::FormatConfig(info);
  FL_ASSIGN_OR_RETURN(const base::Digest config_digest, store_->PutBlob(config_text));
  FL_RETURN_IF_ERROR(base::Failpoint("registry.publish.config"));
  const internal::Artifact artifact = internal::MakeVersionArtifact(
      info, {std::string(internal::kImageConfigType), config_digest, config_text.size()});
  FL_ASSIGN_OR_RETURN(
      const Descriptor manifest,
      store_->PutManifest(internal::FormatArtifact(artifact), internal::kManifestType));
  FL_RETURN_IF_ERROR(base::Failpoint("registry.publish.manifest"));
  info.manifest = manifest.digest;

  FL_RETURN_IF_ERROR(Commit(*snapshot,
                            {{std::string(kRecordPublished), internal::VersionData(info)}},
                            {{internal::VersionTag(info.version), manifest}},
                            {{std::string(internal::kLatestTag), manifest}}, "publish"));
  return info;
}

Status ModelRepository::DropStaged(const base::Path& file) {
  FL_ASSIGN_OR_RETURN(const base::Path staging, store_->StagingDirectory());
  std::error_code error;
  const bool staged = std::filesystem::equivalent(file.parent_path(), staging, error) && !error;
  return staged ? base::RemoveFile(file) : base::OkStatus();
}

}  // namespace fl::registry
