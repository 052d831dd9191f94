#include <algorithm>
#include <set>
#include <tuple>

#include "registry/internal/artifact.h"
#include "registry/internal/reachable.h"
#include "registry/internal/snapshot.h"

namespace fl::registry {
namespace {

using base::Result;
using base::Status;
using Kind = Problem::Kind;

/// Reads everything that one set of tags reaches and notes what is wrong with it.
class Verifier {
 public:
  Verifier(ContentStore& store, const TagSnapshot& tags) : store_(store), tags_(tags) {}

  Result<VerifyReport> Run() && {
    const auto records = tags_.tags.find(internal::kRecordsTag);
    if (records == tags_.tags.end()) {
      FL_RETURN_IF_ERROR(CheckTaggedVersions());
      report_.history_absent = report_.versions > 0;
    } else {
      FL_RETURN_IF_ERROR(CheckRecords(records->second));
      if (intact_) {
        FL_RETURN_IF_ERROR(CheckHistory());
      } else {
        // The records cannot be trusted; what the tags name can still be checked for itself.
        FL_RETURN_IF_ERROR(CheckTaggedVersions());
      }
    }
    FL_RETURN_IF_ERROR(CountUnreferenced());
    return std::move(report_);
  }

 private:
  void Note(Kind kind, std::string subject, std::string message) {
    report_.problems.push_back({kind, std::move(subject), std::move(message)});
  }

  /// Notes what is wrong with stored bytes; gives back what is a fault of the check itself.
  Status Judge(const Status& status, const std::string& subject) {
    switch (status.code()) {
      case base::Code::kOk:
        return status;
      case base::Code::kNotFound:
        Note(Kind::kMissing, subject, status.message());
        return base::OkStatus();
      case base::Code::kDataLoss:
      case base::Code::kOutOfRange:
        Note(Kind::kChanged, subject, status.message());
        return base::OkStatus();
      default:
        return status.WithContext(subject);
    }
  }

  Status CheckRecords(const Descriptor& manifest) {
    const size_t problems_before = report_.problems.size();
    const std::string subject = "records manifest";
    const Result<std::string> text = store_.ReadBlob(manifest.digest, internal::kManifestLimit);
    FL_RETURN_IF_ERROR(Judge(text.status(), subject));
    if (text.ok()) {
      const Result<internal::Artifact> artifact = internal::ParseArtifact(*text, subject);
      FL_RETURN_IF_ERROR(Judge(artifact.status(), subject));
      if (artifact.ok()) FL_RETURN_IF_ERROR(CheckLayers(*artifact));
    }
    intact_ = report_.problems.size() == problems_before;
    return base::OkStatus();
  }

  Status CheckLayers(const internal::Artifact& artifact) {
    for (size_t i = 0; i < artifact.layers.size(); ++i) {
      const Descriptor& layer = artifact.layers[i];
      const std::string subject = "records layer " + std::to_string(i) + " (after record " +
                                  std::to_string(expected_sequence_ - 1) + ")";
      const Result<std::string> text = store_.ReadBlob(layer.digest, internal::kSegmentLimit);
      FL_RETURN_IF_ERROR(Judge(text.status(), subject));
      if (!text.ok()) {
        chain_known_ = false;
        continue;
      }
      report_.bytes += text->size();
      const Result<std::vector<std::string_view>> lines = internal::SplitLines(*text, subject);
      FL_RETURN_IF_ERROR(Judge(lines.status(), subject));
      if (!lines.ok()) continue;
      for (const std::string_view line : *lines) CheckRecord(line);
    }
    const auto head = artifact.annotations.find("dev.kubefl.records.head");
    if (head == artifact.annotations.end() || head->second != expected_previous_.ToString()) {
      Note(Kind::kMissing, "records", "the last record is not the one that the manifest names");
    }
    return base::OkStatus();
  }

  void CheckRecord(std::string_view line) {
    ++report_.records;
    const std::string expected = "record " + std::to_string(expected_sequence_);
    const Result<Record> record = ParseRecord(line);
    if (!record.ok()) {
      Note(Kind::kChanged, expected, record.status().message());
      expected_previous_ = base::Digest::Of(line);
      ++expected_sequence_;
      chain_known_ = true;
      return;
    }
    if (chain_known_) CheckPlace(*record, expected);
    // Go on from what is there, so that each break is named once.
    chain_known_ = true;
    expected_sequence_ = record->sequence + 1;
    expected_previous_ = record->hash;
    if (!report_.problems.empty() || !replay_.ok()) return;
    replay_ = history_.Append(line);
    if (!replay_.ok()) Note(Kind::kInconsistent, expected, replay_.message());
  }

  void CheckPlace(const Record& record, const std::string& expected) {
    const std::string found = "record " + std::to_string(record.sequence);
    if (record.sequence > expected_sequence_) {
      Note(Kind::kMissing, expected, "what follows is " + found);
    } else if (record.sequence < expected_sequence_) {
      Note(Kind::kReordered, found, "it stands where " + expected + " belongs");
    } else if (record.previous != expected_previous_) {
      Note(Kind::kChanged, "record " + std::to_string(record.sequence - 1),
           found + " was written after one with hash " + record.previous.ToString() +
               ", this one has " + expected_previous_.ToString());
    }
  }

  Status CheckHistory() {
    const std::map<std::string, base::Digest> expected = history_.ExpectedTags();
    for (const auto& [tag, digest] : expected) {
      const auto found = tags_.tags.find(tag);
      if (found == tags_.tags.end()) {
        Note(Kind::kMissing, "tag " + tag, "by the records it names " + digest.ToString());
      } else if (found->second.digest != digest) {
        Note(Kind::kChanged, "tag " + tag,
             "it names " + found->second.digest.ToString() + ", by the records it is " +
                 digest.ToString());
      }
    }
    for (const auto& [tag, unused] : tags_.tags) {
      const bool ours = internal::ParseVersionTag(tag) || tag == internal::kPromotedTag ||
                        tag == internal::kPinnedTag;
      if (ours && !expected.contains(tag)) {
        Note(Kind::kInconsistent, "tag " + tag, "the records know nothing of it");
      }
    }
    for (const VersionInfo& version : history_.versions()) {
      if (version.pruned) {
        ++report_.pruned;
        continue;
      }
      FL_RETURN_IF_ERROR(CheckVersion(version.manifest, "v" + ToText(version), &version));
      if (!version.parent) continue;
      const VersionInfo* parent = history_.Find(version.parent->version);
      // A version that was imported alone has a parent that is not here.
      if (parent != nullptr && parent->manifest != version.parent->manifest) {
        Note(Kind::kInconsistent, "v" + ToText(version),
             "its parent is " + version.parent->manifest.ToString() + ", but v" + ToText(*parent) +
                 " is " + parent->manifest.ToString());
      }
    }
    return base::OkStatus();
  }

  Status CheckTaggedVersions() {
    for (const auto& [tag, target] : tags_.tags) {
      if (!internal::ParseVersionTag(tag)) continue;
      FL_RETURN_IF_ERROR(CheckVersion(target.digest, tag, nullptr));
    }
    return base::OkStatus();
  }

  /// `record`, where known, is what the version must say of itself.
  Status CheckVersion(const base::Digest& manifest, const std::string& name,
                      const VersionInfo* record) {
    ++report_.versions;
    const Result<std::string> text = store_.ReadBlob(manifest, internal::kManifestLimit);
    FL_RETURN_IF_ERROR(Judge(text.status(), name + " manifest"));
    if (!text.ok()) return base::OkStatus();
    report_.bytes += text->size();
    const Result<internal::Artifact> artifact =
        internal::ParseArtifact(*text, "manifest " + manifest.ToString());
    FL_RETURN_IF_ERROR(Judge(artifact.status(), name + " manifest"));
    if (!artifact.ok()) return base::OkStatus();

    const Result<std::string> config =
        store_.ReadBlob(artifact->config.digest, internal::kConfigLimit);
    FL_RETURN_IF_ERROR(Judge(config.status(), name + " config"));
    if (config.ok()) {
      report_.bytes += config->size();
      FL_RETURN_IF_ERROR(CheckConfig(*config, manifest, name, *artifact, record));
    }
    for (const Descriptor& layer : artifact->layers) {
      const bool weights = layer.media_type == internal::kWeightsLayerType;
      const bool state = layer.media_type == internal::kStateLayerType;
      const std::string part = weights ? " weights" : state ? " optimiser state" : " layer";
      FL_RETURN_IF_ERROR(CheckLarge(layer, name + part));
    }
    return base::OkStatus();
  }

  Status CheckConfig(const std::string& config, const base::Digest& manifest,
                     const std::string& name, const internal::Artifact& artifact,
                     const VersionInfo* record) {
    Result<VersionInfo> info = internal::ParseConfig(config, "config");
    FL_RETURN_IF_ERROR(Judge(info.status(), name + " config"));
    if (!info.ok()) return base::OkStatus();
    info->manifest = manifest;
    const Descriptor* weights = artifact.FindLayer(internal::kWeightsLayerType);
    if (weights == nullptr || weights->digest != info->weights) {
      Note(Kind::kInconsistent, name + " config", "the manifest names other weights");
    }
    if (record != nullptr && internal::VersionData(*info) != internal::VersionData(*record)) {
      Note(Kind::kInconsistent, name + " config", "its record says otherwise");
    }
    return base::OkStatus();
  }

  Status CheckLarge(const Descriptor& blob, const std::string& subject) {
    if (!hashed_.insert(blob.digest).second) return base::OkStatus();
    const Result<uint64_t> size = store_.StatBlob(blob.digest);
    FL_RETURN_IF_ERROR(Judge(size.status(), subject));
    if (!size.ok()) return base::OkStatus();
    if (*size != blob.size) {
      Note(Kind::kChanged, subject,
           "blob " + blob.digest.ToString() + " has " + std::to_string(*size) +
               " bytes, its manifest says " + std::to_string(blob.size));
      return base::OkStatus();
    }
    report_.bytes += blob.size;
    return Judge(store_.OpenBlob(blob.digest, /*force=*/true).status(), subject);
  }

  Status CountUnreferenced() {
    if (!store_.Capabilities().list_blobs) return base::OkStatus();
    std::set<base::Digest> reached;
    for (const auto& [tag, target] : tags_.tags) {
      // What cannot be read has been noted, or is of others.
      std::ignore = internal::AddReachable(store_, target, reached);
    }
    FL_ASSIGN_OR_RETURN(const std::vector<StoredBlob> blobs, store_.ListBlobs());
    report_.unreferenced_blobs = static_cast<uint64_t>(std::ranges::count_if(
        blobs, [&](const StoredBlob& blob) { return !reached.contains(blob.digest); }));
    return base::OkStatus();
  }

  static std::string ToText(const VersionInfo& version) {
    return std::to_string(version.version.value());
  }

  ContentStore& store_;
  const TagSnapshot& tags_;
  VerifyReport report_;
  internal::History history_;
  Status replay_;
  bool intact_ = false;
  bool chain_known_ = true;  ///< false after a layer that could not be read
  int64_t expected_sequence_ = 0;
  base::Digest expected_previous_;
  std::set<base::Digest> hashed_;
};

}  // namespace

Result<VerifyReport> ModelRepository::Verify() {
  // A writer may prune versions while they are checked: what then looks wrong is looked at again.
  constexpr int kLooks = 5;
  for (int look = 1;; ++look) {
    const Result<TagSnapshot> tags = store_->ReadTags();
    if (tags.status().code() == base::Code::kDataLoss) {
      VerifyReport report;
      report.problems.push_back({Kind::kChanged, "index", tags.status().message()});
      return report;
    }
    FL_RETURN_IF_ERROR(tags.status());
    FL_ASSIGN_OR_RETURN(VerifyReport report, Verifier(*store_, *tags).Run());
    if (report.ok() || look == kLooks) return report;
    const Result<TagSnapshot> now = store_->ReadTags();
    if (!now.ok() || now->revision == tags->revision) return report;
  }
}

}  // namespace fl::registry
