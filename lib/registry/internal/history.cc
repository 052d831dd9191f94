#include "registry/internal/history.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "registry/internal/artifact.h"
#include "registry/internal/stored_json.h"

namespace fl::registry::internal {
namespace {

using nlohmann::json;

std::string RecordName(int64_t sequence) { return "record " + std::to_string(sequence); }

template <typename Versions>
auto FindIn(Versions& versions, base::VersionNumber version) {
  const auto found = std::ranges::lower_bound(versions, version, {}, &VersionInfo::version);
  return found != versions.end() && found->version == version ? &*found : nullptr;
}

}  // namespace

const VersionInfo* History::Find(base::VersionNumber version) const {
  return FindIn(versions_, version);
}

const VersionInfo* History::Current() const {
  if (pinned_) return Find(*pinned_);
  if (promoted_) return Find(*promoted_);
  return Latest();
}

const VersionInfo* History::PreviousCurrent() const {
  const VersionInfo* current = Current();
  for (auto it = currents_.rbegin(); it != currents_.rend(); ++it) {
    const VersionInfo* version = Find(*it);
    if (version != nullptr && version != current && !version->pruned) return version;
  }
  return nullptr;
}

std::map<std::string, base::Digest> History::ExpectedTags() const {
  std::map<std::string, base::Digest> tags;
  const auto add = [&](std::string_view tag, const VersionInfo* version) {
    if (version != nullptr) tags[std::string(tag)] = version->manifest;
  };
  for (const VersionInfo& version : versions_) {
    if (!version.pruned) add(VersionTag(version.version), &version);
  }
  add(kLatestTag, Latest());
  if (promoted_) add(kPromotedTag, Find(*promoted_));
  if (pinned_) add(kPinnedTag, Find(*pinned_));
  return tags;
}

History History::WithoutRecords(std::vector<VersionInfo> versions,
                                std::optional<base::VersionNumber> pinned,
                                std::optional<base::VersionNumber> promoted) {
  History history;
  history.versions_ = std::move(versions);
  std::ranges::sort(history.versions_, {}, &VersionInfo::version);
  for (const VersionInfo& version : history.versions_) {
    history.currents_.push_back(version.version);
  }
  history.pinned_ = pinned;
  history.promoted_ = promoted;
  return history;
}

base::Status History::Append(std::string_view line) {
  const auto sequence = static_cast<int64_t>(lines_.size());
  const std::string name = RecordName(sequence);
  FL_ASSIGN_OR_RETURN(const json value, ParseStored(line, name));
  StoredFields fields(value, name);
  const int64_t stated_sequence = fields.Count("seq");
  const base::Digest previous = fields.Digest("prev");
  const base::Time time = fields.Time("time");
  const std::string type = fields.String("type");
  const json& data = fields.Object("data");
  FL_RETURN_IF_ERROR(fields.status());
  if (stated_sequence != sequence) {
    return base::DataLoss("where " + name + " belongs there is " + RecordName(stated_sequence));
  }
  if (previous != head_) {
    return base::DataLoss(name + " does not follow the one before it: it names " +
                          previous.ToString() + ", that one has " + head_.ToString());
  }
  FL_RETURN_IF_ERROR(Apply(type, time, data).WithContext(name));
  lines_.push_back(std::make_shared<const std::string>(line));
  head_ = base::Digest::Of(line);
  const VersionInfo* current = Current();
  if (current != nullptr && (currents_.empty() || currents_.back() != current->version)) {
    currents_.push_back(current->version);
  }
  return base::OkStatus();
}

base::Result<std::string> History::AppendNew(base::Time time, std::string_view type,
                                             std::string data) {
  Record record;
  record.sequence = static_cast<int64_t>(lines_.size());
  record.previous = head();
  record.time = time;
  record.type = type;
  record.data = std::move(data);
  std::string line = FormatRecord(record);
  FL_RETURN_IF_ERROR(Append(line));
  return line;
}

base::Status History::Apply(const std::string& type, base::Time time, const json& data) {
  StoredFields fields(data, "data");
  const auto version_at = [&](int64_t number) -> base::Result<VersionInfo*> {
    VersionInfo* found = FindIn(versions_, base::VersionNumber(number));
    if (found != nullptr) return found;
    return base::DataLoss("names version " + std::to_string(number) +
                          ", which was never published");
  };

  if (type == kRecordPublished || type == kRecordImported) {
    FL_ASSIGN_OR_RETURN(VersionInfo info, VersionFromJson(data, "data"));
    info.manifest = fields.Digest("manifest");
    FL_RETURN_IF_ERROR(fields.status());
    const bool begins = versions_.empty() && type == kRecordImported;
    const base::VersionNumber next =
        versions_.empty() ? base::VersionNumber(0) : versions_.back().version.Next();
    if (info.version != next && !begins) {
      return base::DataLoss("publishes version " + std::to_string(info.version.value()) +
                            " where version " + std::to_string(next.value()) + " comes next");
    }
    versions_.push_back(std::move(info));
  } else if (type == kRecordPinned || type == kRecordPromoted) {
    const int64_t number = fields.Count("version");
    FL_RETURN_IF_ERROR(fields.status());
    FL_ASSIGN_OR_RETURN(const VersionInfo* version, version_at(number));
    (type == kRecordPinned ? pinned_ : promoted_) = version->version;
  } else if (type == kRecordUnpinned) {
    pinned_.reset();
  } else if (type == kRecordPruned) {
    for (const json& item : fields.Array("versions")) {
      if (!item.is_number_unsigned()) return base::DataLoss("\"versions\" has a non-number");
      FL_ASSIGN_OR_RETURN(VersionInfo * version, version_at(item.get<int64_t>()));
      version->pruned = true;
    }
    FL_RETURN_IF_ERROR(fields.status());
  } else if (type == kRecordJobFinished) {
    FinishedJob job;
    job.job = base::JobName(fields.String("job"));
    job.outcome = fields.String("outcome");
    job.reason = fields.String("reason");
    if (fields.Has("configDigest")) job.config_digest = fields.Digest("configDigest");
    if (fields.Has("version")) job.version = base::VersionNumber(fields.Count("version"));
    job.time = time;
    FL_RETURN_IF_ERROR(fields.status());
    finished_[job.job] = job;
  }
  return base::OkStatus();
}

base::Result<std::vector<std::string_view>> SplitLines(std::string_view text,
                                                       const std::string& where) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      return base::DataLoss(where + " ends in the middle of a record");
    }
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

base::Result<LoadedRecords> LoadRecords(ContentStore& store, const Descriptor& manifest,
                                        const LoadedRecords* previous) {
  const std::string where = "records manifest " + manifest.digest.ToString();
  FL_ASSIGN_OR_RETURN(const std::string text, store.ReadBlob(manifest.digest, kManifestLimit));
  FL_ASSIGN_OR_RETURN(const Artifact artifact, ParseArtifact(text, where));

  LoadedRecords loaded;
  size_t next_layer = 0;
  size_t skip = 0;  // bytes of the next layer that `previous` has
  if (previous != nullptr) {
    const bool open = !previous->layers.open_text.empty();
    const size_t full = previous->layers.layers.size() - (open ? 1 : 0);
    if (artifact.layers.size() >= full + (open ? 1 : 0) &&
        std::equal(previous->layers.layers.begin(),
                   previous->layers.layers.begin() + static_cast<ptrdiff_t>(full),
                   artifact.layers.begin())) {
      loaded.history = previous->history;
      next_layer = full;
      skip = previous->layers.open_text.size();
    }
  }
  loaded.layers.manifest = manifest;
  loaded.layers.layers = artifact.layers;
  for (size_t i = next_layer; i < artifact.layers.size(); ++i) {
    const Descriptor& layer = artifact.layers[i];
    if (layer.size > kSegmentLimit) return base::DataLoss(where + ": a layer is too large");
    FL_ASSIGN_OR_RETURN(const std::string layer_text, store.ReadBlob(layer.digest, layer.size));
    if (skip > 0 && !layer_text.starts_with(previous->layers.open_text)) {
      // What was read before was replaced, not continued: start over.
      return LoadRecords(store, manifest, nullptr);
    }
    FL_ASSIGN_OR_RETURN(const std::vector<std::string_view> lines,
                        SplitLines(std::string_view(layer_text).substr(skip),
                                   "records " + layer.digest.ToString()));
    for (const std::string_view line : lines) FL_RETURN_IF_ERROR(loaded.history.Append(line));
    skip = 0;
    const auto count = static_cast<size_t>(std::ranges::count(layer_text, '\n'));
    if (i + 1 == artifact.layers.size() && count < kSegmentRecords) {
      loaded.layers.open_text = layer_text;
    }
  }
  const auto head = artifact.annotations.find("dev.kubefl.records.head");
  if (head == artifact.annotations.end() || head->second != loaded.history.head().ToString()) {
    return base::DataLoss(where + ": the last record is not the one it names as the head");
  }
  return loaded;
}

base::Result<RecordLayers> StoreRecords(ContentStore& store, const RecordLayers& base,
                                        const History& history,
                                        const std::vector<std::string>& lines) {
  RecordLayers next{std::nullopt, base.layers, base.open_text};
  if (!next.open_text.empty()) next.layers.pop_back();
  auto count = static_cast<size_t>(std::ranges::count(next.open_text, '\n'));
  const auto store_layer = [&]() -> base::Status {
    FL_ASSIGN_OR_RETURN(const base::Digest digest, store.PutBlob(next.open_text));
    next.layers.push_back({std::string(kRecordsLayerType), digest, next.open_text.size()});
    return base::OkStatus();
  };
  for (const std::string& line : lines) {
    next.open_text += line + "\n";
    if (++count == kSegmentRecords) {
      FL_RETURN_IF_ERROR(store_layer());
      next.open_text.clear();
      count = 0;
    }
  }
  if (count > 0) FL_RETURN_IF_ERROR(store_layer());

  Artifact artifact;
  artifact.artifact_type = kRecordsArtifactType;
  constexpr std::string_view kEmptyConfig = "{}";
  FL_ASSIGN_OR_RETURN(const base::Digest config, store.PutBlob(kEmptyConfig));
  artifact.config = {std::string(kEmptyConfigType), config, kEmptyConfig.size()};
  artifact.layers = next.layers;
  artifact.annotations["dev.kubefl.records.count"] = std::to_string(history.lines().size());
  artifact.annotations["dev.kubefl.records.head"] = history.head().ToString();
  FL_ASSIGN_OR_RETURN(next.manifest, store.PutManifest(FormatArtifact(artifact), kManifestType));
  return next;
}

std::string VersionData(const VersionInfo& info) {
  json data = VersionToJson(info);
  data["manifest"] = info.manifest.ToString();
  return base::DumpJson(data);
}

std::string MoveData(const VersionInfo& info) {
  return base::DumpJson(
      json{{"version", info.version.value()}, {"manifest", info.manifest.ToString()}});
}

std::string PrunedData(const std::vector<base::VersionNumber>& versions) {
  json numbers = json::array();
  for (const base::VersionNumber version : versions) numbers.push_back(version.value());
  return base::DumpJson(json{{"versions", std::move(numbers)}});
}

std::string JobFinishedData(const FinishedJob& job) {
  json data = {{"job", job.job.str()}, {"outcome", job.outcome}, {"reason", job.reason}};
  if (!job.config_digest.empty()) data["configDigest"] = job.config_digest.ToString();
  if (job.version) data["version"] = job.version->value();
  return base::DumpJson(data);
}

}  // namespace fl::registry::internal
