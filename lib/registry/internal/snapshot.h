#pragma once

/// What a repository knows at one moment, and how it is read from a store.

#include <memory>

#include "base/status.h"
#include "registry/internal/history.h"
#include "registry/repository.h"
#include "registry/store.h"

namespace fl::registry {

struct ModelRepository::Snapshot {
  TagSnapshot tags;
  internal::LoadedRecords records;
  bool history_absent = false;  ///< versions without records: copies from elsewhere

  const internal::History& history() const { return records.history; }
  /// The version that is there to be read. kNotFound, or kFailedPrecondition where pruned.
  base::Result<const VersionInfo*> FindPresent(base::VersionNumber version) const;
};

}  // namespace fl::registry

namespace fl::registry::internal {

/// How often a reader starts over because a writer replaced what it was about to read, and a writer
/// because another was faster. Each time, somebody else got ahead.
inline constexpr int kAttempts = 1000;

/// A version by its manifest and config alone. kNotFound, kDataLoss.
base::Result<VersionInfo> ReadVersion(ContentStore& store, const Descriptor& manifest);

}  // namespace fl::registry::internal

namespace fl::registry {

template <typename Attempt>
auto ModelRepository::Write(Attempt attempt) -> decltype(attempt()) {
  FL_RETURN_IF_ERROR(RequireWriter());
  const std::lock_guard lock(write_mutex_);
  for (int i = 0; i < internal::kAttempts; ++i) {
    if (tags_unfinished_) {
      FL_RETURN_IF_ERROR(FinishTags());
      tags_unfinished_ = false;
    }
    auto result = attempt();
    if (result.ok() || result.status().code() != base::Code::kAborted) return result;
  }
  return base::Aborted(store_->Name() + ": other writers were faster each time");
}

}  // namespace fl::registry
