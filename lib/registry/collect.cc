#include <algorithm>
#include <set>
#include <tuple>

#include "base/failpoint.h"
#include "registry/internal/artifact.h"
#include "registry/internal/reachable.h"
#include "registry/internal/snapshot.h"

namespace fl::registry {
namespace {

using base::Result;
using base::Status;

/// The numbers that retention may not touch.
std::set<base::VersionNumber> Needed(const internal::History& history, const TagSnapshot& tags,
                                     const RetentionPolicy& policy) {
  std::set<base::VersionNumber> needed(policy.also_keep.begin(), policy.also_keep.end());
  int64_t newest = policy.keep_last;
  for (auto it = history.versions().rbegin(); it != history.versions().rend() && newest > 0; ++it) {
    if (it->pruned) continue;
    needed.insert(it->version);
    --newest;
  }
  std::set<base::Digest> tagged;
  for (const auto& [tag, target] : tags.tags) {
    if (!internal::ParseVersionTag(tag)) tagged.insert(target.digest);
  }
  for (const VersionInfo& version : history.versions()) {
    const bool named = &version == history.Latest() || version.version == history.pinned() ||
                       version.version == history.promoted() || tagged.contains(version.manifest);
    if (!named) continue;
    needed.insert(version.version);
    if (version.parent) needed.insert(version.parent->version);
  }
  return needed;
}

}  // namespace

Result<RetentionReport> ModelRepository::Collect(const RetentionPolicy& policy) {
  if (policy.keep_last < 1) {
    return base::InvalidArgument("retention has to keep at least 1 version, not " +
                                 std::to_string(policy.keep_last));
  }
  return Write([&] { return CollectOnce(policy); });
}

Result<RetentionReport> ModelRepository::CollectOnce(const RetentionPolicy& policy) {
  FL_ASSIGN_OR_RETURN(const auto snapshot, Refresh());
  const internal::History& history = snapshot->history();
  const std::set<base::VersionNumber> needed = Needed(history, snapshot->tags, policy);

  RetentionReport report;
  std::vector<TagChange> untag;
  std::set<base::Digest> released;
  for (const VersionInfo& version : history.versions()) {
    if (version.pruned || needed.contains(version.version)) continue;
    report.pruned.push_back(version.version);
    const std::string tag = internal::VersionTag(version.version);
    const auto found = snapshot->tags.tags.find(tag);
    if (found != snapshot->tags.tags.end()) {
      // A version that cannot be read is pruned too; its layers are known from the records.
      std::ignore = internal::AddReachable(*store_, found->second, released);
      untag.push_back({tag, std::nullopt});
    }
    released.insert({version.manifest, version.weights});
    if (version.state) released.insert(*version.state);
  }

  // All that stays, before anything is touched: if a manifest that stays cannot be read, nothing
  // may be removed.
  std::set<base::Digest> kept;
  for (const auto& [tag, target] : snapshot->tags.tags) {
    const auto removed = std::ranges::find(untag, tag, &TagChange::tag);
    if (removed != untag.end()) continue;
    const Status status = internal::AddReachable(*store_, target, kept);
    if (!status.ok()) return status.WithContext("tag " + tag + " (nothing was removed)");
  }
  const base::Time now = writer_->clock->Now();
  std::vector<StoredBlob> garbage;
  if (store_->Capabilities().list_blobs) {
    FL_ASSIGN_OR_RETURN(const std::vector<StoredBlob> blobs, store_->ListBlobs());
    const auto superseded = [&](const base::Digest& digest) {
      return std::ranges::find(superseded_, digest) != superseded_.end();
    };
    for (const StoredBlob& blob : blobs) {
      if (kept.contains(blob.digest) || superseded(blob.digest)) continue;
      if (released.contains(blob.digest) || now - blob.modified >= policy.orphan_age) {
        garbage.push_back(blob);
      }
    }
  } else {
    for (const base::Digest& digest : released) {
      const Result<uint64_t> size = store_->StatBlob(digest);
      if (size.ok() && !kept.contains(digest)) garbage.push_back({digest, *size, now});
    }
  }
  for (const StoredBlob& blob : garbage) {
    ++report.blobs;
    report.bytes += blob.size;
  }
  if (policy.dry_run) return report;

  if (!report.pruned.empty()) {
    FL_RETURN_IF_ERROR(Commit(*snapshot,
                              {{std::string(kRecordPruned), internal::PrunedData(report.pruned)}},
                              {}, untag, "collect"));
  }
  for (const StoredBlob& blob : garbage) {
    FL_RETURN_IF_ERROR(base::Failpoint("registry.collect.delete"));
    FL_RETURN_IF_ERROR(store_->DeleteBlob(blob.digest));
  }
  return report;
}

}  // namespace fl::registry
