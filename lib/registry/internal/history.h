#pragma once

/// The records of a model replayed: what it says about versions, pins and jobs.

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "registry/record.h"
#include "registry/store.h"
#include "registry/version.h"

namespace fl::registry::internal {

/// The tag of the records' own artifact. Its layers, joined in order, are the records, one a line.
inline constexpr std::string_view kRecordsTag = "records";
inline constexpr std::string_view kLatestTag = "latest";
inline constexpr std::string_view kPromotedTag = "promoted";
inline constexpr std::string_view kPinnedTag = "pinned";

/// A layer that has this many records is never written again; the last one, with fewer, is replaced
/// by a longer one at each append.
inline constexpr size_t kSegmentRecords = 64;
/// No layer of records is larger.
inline constexpr uint64_t kSegmentLimit = 64 << 20;

/// A value: copy it, append to the copy.
class History {
 public:
  /// Appends a line (without newline) and does what it says. kDataLoss where it does not follow
  /// from what came before; then the object must not be used any more.
  base::Status Append(std::string_view line);
  /// Appends a record of `type` that follows from what is there, and returns its line.
  base::Result<std::string> AppendNew(base::Time time, std::string_view type, std::string data);

  /// Oldest first, pruned ones too.
  const std::vector<VersionInfo>& versions() const { return versions_; }
  const VersionInfo* Find(base::VersionNumber version) const;
  const VersionInfo* Latest() const { return versions_.empty() ? nullptr : &versions_.back(); }
  const VersionInfo* Current() const;
  const VersionInfo* PreviousCurrent() const;
  std::optional<base::VersionNumber> pinned() const { return pinned_; }
  std::optional<base::VersionNumber> promoted() const { return promoted_; }
  const std::map<base::JobName, FinishedJob>& finished() const { return finished_; }
  /// The records as they were written.
  const std::vector<std::shared_ptr<const std::string>>& lines() const { return lines_; }
  /// The hash of the last record; all zeros where there is none.
  base::Digest head() const { return head_; }

  /// What the moving tags and the version tags are to name, by the records.
  std::map<std::string, base::Digest> ExpectedTags() const;

  /// For a repository that has versions but no records.
  static History WithoutRecords(std::vector<VersionInfo> versions,
                                std::optional<base::VersionNumber> pinned,
                                std::optional<base::VersionNumber> promoted);

 private:
  base::Status Apply(const std::string& type, base::Time time, const nlohmann::json& data);

  std::vector<VersionInfo> versions_;  ///< by number
  std::optional<base::VersionNumber> pinned_;
  std::optional<base::VersionNumber> promoted_;
  std::map<base::JobName, FinishedJob> finished_;
  std::vector<base::VersionNumber> currents_;  ///< each version that became current, oldest first
  std::vector<std::shared_ptr<const std::string>> lines_;  ///< shared by copies of this object
  base::Digest head_;
};

/// How the records are laid out in the store: the layers, and the text of the last one where it can
/// still grow.
struct RecordLayers {
  std::optional<Descriptor> manifest;
  std::vector<Descriptor> layers;
  std::string open_text;  ///< of layers.back(), empty where that is full or absent
};

/// Everything a reader knows at one moment.
struct LoadedRecords {
  History history;
  RecordLayers layers;
};

/// Reads the records that `manifest` names. What `previous` (may be null) has read already is not
/// read again. kNotFound where a blob is gone: a writer has replaced it, re-read the tags.
base::Result<LoadedRecords> LoadRecords(ContentStore& store, const Descriptor& manifest,
                                        const LoadedRecords* previous);

/// Stores the records of `base` followed by `lines` and returns the new layout; moves no tag.
base::Result<RecordLayers> StoreRecords(ContentStore& store, const RecordLayers& base,
                                        const History& history,
                                        const std::vector<std::string>& lines);

/// The lines of a layer. kDataLoss where the last has no newline.
base::Result<std::vector<std::string_view>> SplitLines(std::string_view text,
                                                       const std::string& where);

/// The data of records.
std::string VersionData(const VersionInfo& info);
std::string MoveData(const VersionInfo& info);
std::string PrunedData(const std::vector<base::VersionNumber>& versions);
std::string JobFinishedData(const FinishedJob& job);

}  // namespace fl::registry::internal
