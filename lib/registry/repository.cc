#include "registry/repository.h"

#include <algorithm>
#include <utility>

#include "base/failpoint.h"
#include "registry/internal/artifact.h"
#include "registry/internal/snapshot.h"

namespace fl::registry {

using base::Result;
using base::Status;

namespace {

Result<internal::History> LoadWithoutRecords(ContentStore& store, const TagSnapshot& tags) {
  std::vector<VersionInfo> versions;
  std::optional<base::VersionNumber> pinned;
  std::optional<base::VersionNumber> promoted;
  for (const auto& [tag, manifest] : tags.tags) {
    const bool moving = tag == internal::kPinnedTag || tag == internal::kPromotedTag;
    if (!moving && !internal::ParseVersionTag(tag)) continue;
    const Result<VersionInfo> info = internal::ReadVersion(store, manifest);
    if (!info.ok()) return info.status().WithContext("tag " + tag);
    if (tag == internal::kPinnedTag) pinned = info->version;
    if (tag == internal::kPromotedTag) promoted = info->version;
    if (std::ranges::find(versions, info->version, &VersionInfo::version) == versions.end()) {
      versions.push_back(*info);
    }
  }
  return internal::History::WithoutRecords(std::move(versions), pinned, promoted);
}

/// The error of reading `part` of a version that must be there.
Status Lost(const Status& status, base::VersionNumber version, std::string_view part) {
  const std::string where = "version " + std::to_string(version.value()) + ": " + std::string(part);
  if (status.code() != base::Code::kNotFound) return status.WithContext(where);
  return base::DataLoss(where + ": " + status.message(), "restore it from a copy of the registry");
}

}  // namespace

Result<VersionInfo> internal::ReadVersion(ContentStore& store, const Descriptor& manifest) {
  const std::string where = "manifest " + manifest.digest.ToString();
  FL_ASSIGN_OR_RETURN(const std::string text, store.ReadBlob(manifest.digest, kManifestLimit));
  FL_ASSIGN_OR_RETURN(const Artifact artifact, ParseArtifact(text, where));
  FL_ASSIGN_OR_RETURN(const std::string config,
                      store.ReadBlob(artifact.config.digest, kConfigLimit));
  FL_ASSIGN_OR_RETURN(VersionInfo info, ParseConfig(config, where + ": config"));
  info.manifest = manifest.digest;
  return info;
}

Result<const VersionInfo*> ModelRepository::Snapshot::FindPresent(
    base::VersionNumber version) const {
  const VersionInfo* info = history().Find(version);
  if (info == nullptr) {
    return base::NotFound("there is no version " + std::to_string(version.value()) +
                          " of this model");
  }
  if (info->pruned) {
    return base::FailedPrecondition(
        "version " + std::to_string(version.value()) + " was removed by retention",
        "choose a version that `fl models list` does not show as pruned");
  }
  return info;
}

ModelRepository::ModelRepository(std::unique_ptr<ContentStore> store) : store_(std::move(store)) {}
ModelRepository::~ModelRepository() = default;

Result<std::unique_ptr<ModelRepository>> ModelRepository::OpenReader(
    std::unique_ptr<ContentStore> store) {
  std::unique_ptr<ModelRepository> repository(new ModelRepository(std::move(store)));
  FL_RETURN_IF_ERROR(repository->store_->ReadTags().status());
  return repository;
}

Result<std::unique_ptr<ModelRepository>> ModelRepository::OpenWriter(
    std::unique_ptr<ContentStore> store, WriterOptions options) {
  std::unique_ptr<ModelRepository> repository(new ModelRepository(std::move(store)));
  FL_ASSIGN_OR_RETURN(repository->hold_, repository->store_->HoldForWriting(options.owner));
  repository->writer_ = std::move(options);
  FL_ASSIGN_OR_RETURN(const std::shared_ptr<const Snapshot> snapshot, repository->Refresh());
  if (snapshot->history_absent) {
    return base::FailedPrecondition(
        repository->store_->Name() + " holds versions that were copied there without their records",
        "publish to another registry, or copy the tag \"records\" and all versions too");
  }
  FL_RETURN_IF_ERROR(repository->FinishTags());
  return repository;
}

Status ModelRepository::RequireWriter() const {
  if (writer_) return base::OkStatus();
  return base::FailedPrecondition(store_->Name() + " was opened for reading only");
}

Result<std::shared_ptr<const ModelRepository::Snapshot>> ModelRepository::Refresh() {
  for (int attempt = 0; attempt < internal::kAttempts; ++attempt) {
    FL_ASSIGN_OR_RETURN(TagSnapshot tags, store_->ReadTags());
    std::shared_ptr<const Snapshot> previous;
    {
      const std::lock_guard lock(snapshot_mutex_);
      previous = snapshot_;
    }
    if (previous != nullptr && previous->tags.revision == tags.revision) return previous;

    auto loaded = std::make_shared<Snapshot>();
    Status status;
    if (const auto records = tags.tags.find(internal::kRecordsTag); records != tags.tags.end()) {
      const bool continued = previous != nullptr && !previous->history_absent;
      Result<internal::LoadedRecords> read =
          internal::LoadRecords(*store_, records->second, continued ? &previous->records : nullptr);
      status = read.status();
      if (read.ok()) loaded->records = *std::move(read);
    } else {
      Result<internal::History> history = LoadWithoutRecords(*store_, tags);
      status = history.status();
      if (history.ok()) loaded->records.history = *std::move(history);
      loaded->history_absent = !loaded->history().versions().empty();
    }
    if (status.ok()) {
      loaded->tags = std::move(tags);
      const std::lock_guard lock(snapshot_mutex_);
      snapshot_ = loaded;
      return std::shared_ptr<const Snapshot>(loaded);
    }
    if (status.code() != base::Code::kNotFound) return status.WithContext(store_->Name());
    // Either a writer has just replaced what these tags name, or it is really gone.
    FL_ASSIGN_OR_RETURN(const TagSnapshot now, store_->ReadTags());
    if (now.revision == tags.revision) {
      return base::DataLoss(store_->Name() + ": " + status.message(),
                            "restore it from a copy of the registry");
    }
  }
  return base::Unavailable(store_->Name() + " changes faster than it can be read");
}

Status ModelRepository::FinishTags() {
  if (store_->Capabilities().atomic_tags) return base::OkStatus();
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  const std::map<std::string, base::Digest> expected = snapshot->history().ExpectedTags();
  std::vector<TagChange> changes;
  for (const auto& [tag, digest] : expected) {
    const auto found = snapshot->tags.tags.find(tag);
    if (found != snapshot->tags.tags.end() && found->second.digest == digest) continue;
    FL_ASSIGN_OR_RETURN(const uint64_t size, store_->StatBlob(digest));
    changes.push_back({tag, Descriptor{std::string(internal::kManifestType), digest, size}});
  }
  for (const auto& [tag, unused] : snapshot->tags.tags) {
    const bool ours = internal::ParseVersionTag(tag) || tag == internal::kLatestTag ||
                      tag == internal::kPromotedTag || tag == internal::kPinnedTag;
    if (ours && !expected.contains(tag)) changes.push_back({tag, std::nullopt});
  }
  if (changes.empty()) return base::OkStatus();
  return store_->CommitTags(changes, snapshot->tags.revision).status();
}

Status ModelRepository::Commit(const Snapshot& from, const std::vector<NewRecord>& records,
                               const std::vector<TagChange>& before,
                               const std::vector<TagChange>& after, std::string_view operation) {
  const std::string failpoint = "registry." + std::string(operation);
  auto next = std::make_shared<Snapshot>(from);
  std::vector<std::string> lines;
  for (const NewRecord& record : records) {
    FL_ASSIGN_OR_RETURN(std::string line, next->records.history.AppendNew(
                                              writer_->clock->Now(), record.type, record.data));
    lines.push_back(std::move(line));
  }
  FL_ASSIGN_OR_RETURN(next->records.layers,
                      internal::StoreRecords(*store_, from.records.layers, next->history(), lines));
  FL_RETURN_IF_ERROR(base::Failpoint(failpoint + ".records"));

  std::vector<TagChange> changes = before;
  changes.push_back({std::string(internal::kRecordsTag), next->records.layers.manifest});
  changes.insert(changes.end(), after.begin(), after.end());
  tags_unfinished_ = true;
  FL_ASSIGN_OR_RETURN(next->tags.revision, store_->CommitTags(changes, from.tags.revision));
  tags_unfinished_ = false;
  FL_RETURN_IF_ERROR(base::Failpoint(failpoint + ".committed"));

  for (const TagChange& change : changes) {
    if (change.target) {
      next->tags.tags[change.tag] = *change.target;
    } else {
      next->tags.tags.erase(change.tag);
    }
  }
  {
    const std::lock_guard lock(snapshot_mutex_);
    snapshot_ = next;
  }
  // What the commit before this one replaced: a reader who still wants that has been slow, and will
  // start over. It is only garbage, so a failure to remove it is not one of this call.
  for (const base::Digest& digest : superseded_) std::ignore = store_->DeleteBlob(digest);
  superseded_.clear();
  const internal::RecordLayers& old = from.records.layers;
  if (old.manifest) superseded_.push_back(old.manifest->digest);
  if (!old.open_text.empty()) superseded_.push_back(old.layers.back().digest);
  return base::OkStatus();
}

Result<base::Path> ModelRepository::StagingPath(std::string_view name) {
  FL_RETURN_IF_ERROR(RequireWriter());
  if (name.empty() || name.starts_with('.') || name.find('/') != std::string_view::npos) {
    return base::InvalidArgument("\"" + std::string(name) + "\" is not the name of a file");
  }
  FL_ASSIGN_OR_RETURN(const base::Path directory, store_->StagingDirectory());
  return directory / name;
}

Result<std::vector<VersionInfo>> ModelRepository::List() {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  return snapshot->history().versions();
}

Result<VersionInfo> ModelRepository::Get(base::VersionNumber version) {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  const VersionInfo* info = snapshot->history().Find(version);
  if (info != nullptr) return *info;
  return base::NotFound("there is no version " + std::to_string(version.value()) + " in " +
                        store_->Name());
}

Result<VersionInfo> ModelRepository::Get(std::string_view name) {
  if (name == "current") return Current();
  if (name == internal::kLatestTag) return Latest();
  const std::string tag = std::string(name);
  if (const auto number = internal::ParseVersionTag(tag)) return Get(*number);
  if (const auto number = internal::ParseVersionTag("v" + tag)) return Get(*number);
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  const internal::History& history = snapshot->history();
  std::optional<base::VersionNumber> moved;
  if (name == internal::kPinnedTag) moved = history.pinned();
  if (name == internal::kPromotedTag) moved = history.promoted();
  if (moved) return *history.Find(*moved);
  if (const auto found = snapshot->tags.tags.find(tag); found != snapshot->tags.tags.end()) {
    for (const VersionInfo& info : history.versions()) {
      if (info.manifest == found->second.digest) return info;
    }
  }
  return base::NotFound("there is no version \"" + tag + "\" in " + store_->Name());
}

Result<VersionInfo> ModelRepository::Latest() {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  if (const VersionInfo* info = snapshot->history().Latest()) return *info;
  return base::NotFound("there is no version in " + store_->Name() + " yet");
}

Result<VersionInfo> ModelRepository::Current() {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  if (const VersionInfo* info = snapshot->history().Current()) return *info;
  return base::NotFound("there is no version in " + store_->Name() + " yet");
}

Result<VersionInfo> ModelRepository::PreviousCurrent() {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  if (const VersionInfo* info = snapshot->history().PreviousCurrent()) return *info;
  return base::NotFound("no other version in " + store_->Name() + " was current before");
}

Result<std::optional<base::VersionNumber>> ModelRepository::Pinned() {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  return snapshot->history().pinned();
}

Result<std::optional<base::VersionNumber>> ModelRepository::Promoted() {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  return snapshot->history().promoted();
}

Result<std::vector<Record>> ModelRepository::Records() {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  std::vector<Record> records;
  for (const auto& line : snapshot->history().lines()) {
    FL_ASSIGN_OR_RETURN(Record record, ParseRecord(*line));
    records.push_back(std::move(record));
  }
  return records;
}

Result<OpenedBlob> ModelRepository::OpenPart(base::VersionNumber version, std::string_view part,
                                             const base::Digest& digest, bool force) {
  Result<OpenedBlob> blob = store_->OpenBlob(digest, force);
  if (blob.ok()) return blob;
  if (blob.status().code() == base::Code::kNotFound) {
    // Pruned since the records were read, or lost.
    FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
    FL_RETURN_IF_ERROR(snapshot->FindPresent(version).status());
  }
  return Lost(blob.status(), version, part);
}

Result<Descriptor> ModelRepository::CheckManifest(const VersionInfo& info) {
  FL_ASSIGN_OR_RETURN(const uint64_t size, store_->StatBlob(info.manifest));
  Descriptor manifest{std::string(internal::kManifestType), info.manifest, size};
  FL_RETURN_IF_ERROR(internal::ReadVersion(*store_, manifest).status());
  return manifest;
}

Result<OpenedBlob> ModelRepository::OpenWeights(base::VersionNumber version) {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  FL_ASSIGN_OR_RETURN(const VersionInfo* info, snapshot->FindPresent(version));
  return OpenPart(version, "weights", info->weights, /*force=*/false);
}

Result<std::optional<OpenedBlob>> ModelRepository::OpenState(base::VersionNumber version) {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  FL_ASSIGN_OR_RETURN(const VersionInfo* info, snapshot->FindPresent(version));
  if (!info->state) return std::optional<OpenedBlob>();
  FL_ASSIGN_OR_RETURN(OpenedBlob blob,
                      OpenPart(version, "optimiser state", *info->state, /*force=*/false));
  return std::optional<OpenedBlob>(std::move(blob));
}

Result<Change> ModelRepository::MoveTag(std::string_view tag, base::VersionNumber version) {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  FL_ASSIGN_OR_RETURN(const VersionInfo* info, snapshot->FindPresent(version));
  const bool pin = tag == internal::kPinnedTag;
  const std::optional<base::VersionNumber> pinned = snapshot->history().pinned();
  if (!pin && pinned && *pinned != version) {
    return base::FailedPrecondition("version " + std::to_string(pinned->value()) +
                                        " is pinned, so version " +
                                        std::to_string(version.value()) + " cannot be promoted",
                                    "take the pin off first (fl rollback MODEL --unpin)");
  }
  if ((pin ? pinned : snapshot->history().promoted()) == version) return Change::kAlreadySo;

  const Result<Descriptor> manifest = CheckManifest(*info);
  FL_RETURN_IF_ERROR(Lost(manifest.status(), version, "manifest"));
  FL_RETURN_IF_ERROR(OpenPart(version, "weights", info->weights, /*force=*/true).status());
  if (info->state) {
    FL_RETURN_IF_ERROR(OpenPart(version, "optimiser state", *info->state, /*force=*/true).status());
  }
  FL_RETURN_IF_ERROR(Commit(
      *snapshot, {{std::string(pin ? kRecordPinned : kRecordPromoted), internal::MoveData(*info)}},
      {}, {{std::string(tag), *manifest}}, pin ? "pin" : "promote"));
  return Change::kMade;
}

Result<Change> ModelRepository::Pin(base::VersionNumber version) {
  return Write([&] { return MoveTag(internal::kPinnedTag, version); });
}

Result<Change> ModelRepository::Promote(base::VersionNumber version) {
  return Write([&] { return MoveTag(internal::kPromotedTag, version); });
}

Result<Change> ModelRepository::Unpin() {
  return Write([&]() -> Result<Change> {
    FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
    const std::optional<base::VersionNumber> pinned = snapshot->history().pinned();
    if (!pinned) return Change::kAlreadySo;
    FL_RETURN_IF_ERROR(Commit(
        *snapshot,
        {{std::string(kRecordUnpinned), internal::MoveData(*snapshot->history().Find(*pinned))}},
        {}, {{std::string(internal::kPinnedTag), std::nullopt}}, "unpin"));
    return Change::kMade;
  });
}

Result<Change> ModelRepository::RecordJobFinished(const FinishedJob& job) {
  return Write([&]() -> Result<Change> {
    FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
    const auto& finished = snapshot->history().finished();
    if (const auto found = finished.find(job.job); found != finished.end()) {
      FinishedJob same = job;
      same.time = found->second.time;
      if (same == found->second) return Change::kAlreadySo;
    }
    FL_RETURN_IF_ERROR(Commit(*snapshot,
                              {{std::string(kRecordJobFinished), internal::JobFinishedData(job)}},
                              {}, {}, "job-finished"));
    return Change::kMade;
  });
}

Result<std::optional<FinishedJob>> ModelRepository::FindFinishedJob(const base::JobName& job) {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  const auto found = snapshot->history().finished().find(job);
  if (found == snapshot->history().finished().end()) return std::optional<FinishedJob>();
  return std::optional<FinishedJob>(found->second);
}

}  // namespace fl::registry
