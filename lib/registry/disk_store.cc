#include "registry/disk_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/encoding.h"
#include "base/failpoint.h"
#include "registry/internal/artifact.h"
#include "registry/internal/stored_json.h"

namespace fl::registry {
namespace {

using base::Path;
using base::Result;
using base::Status;
using nlohmann::json;

constexpr std::string_view kRefName = "org.opencontainers.image.ref.name";
constexpr std::string_view kLayout = "{\"imageLayoutVersion\":\"1.0.0\"}";
/// An index of 100,000 versions is smaller.
constexpr uint64_t kIndexLimit = 64 << 20;
constexpr size_t kChunk = 1 << 20;

class LockHold final : public WriterHold {
 public:
  explicit LockHold(base::FileLock lock) : lock_(std::move(lock)) {}

 private:
  base::FileLock lock_;
};

Status Errno(std::string_view what, const Path& path) {
  const int error_number = errno;
  return base::FromErrno(error_number, std::string(what) + " " + path.string());
}

Result<base::UniqueFd> OpenForReading(const Path& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Errno("open", path);
  return fd;
}

Status SyncFile(int fd, const Path& path) {
  return ::fsync(fd) == 0 ? base::OkStatus() : Errno("fsync", path);
}

/// Commits a blob whose name in the folder the caller makes durable later: its bytes are on disk
/// before it has that name, so that no crash leaves a name with other bytes.
Status CommitBlob(base::FileWriter writer) {
  {
    FL_ASSIGN_OR_RETURN(const base::UniqueFd fd, OpenForReading(writer.temporary_path()));
    FL_RETURN_IF_ERROR(SyncFile(fd.get(), writer.temporary_path()));
  }
  return std::move(writer).Commit(/*durable=*/false);
}

/// Reads `fd` to its end in chunks.
template <typename Consume>
Status ReadAll(int fd, const Path& path, Consume consume) {
  std::string buffer(kChunk, '\0');
  while (true) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return Errno("read", path);
    }
    if (count == 0) return base::OkStatus();
    FL_RETURN_IF_ERROR(consume(
        std::span(reinterpret_cast<const uint8_t*>(buffer.data()), static_cast<size_t>(count))));
  }
}

std::string_view RefName(const json& entry) {
  if (!entry.is_object()) return "";
  const auto annotations = entry.find("annotations");
  if (annotations == entry.end() || !annotations->is_object()) return "";
  const auto name = annotations->find(kRefName);
  if (name == annotations->end()) return "";
  const auto* text = name->get_ptr<const std::string*>();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

Result<json> ParseIndex(std::string_view text, const Path& path) {
  FL_ASSIGN_OR_RETURN(json index, internal::ParseStored(text, path.string()));
  internal::StoredFields fields(index, path.string());
  fields.Array("manifests");
  FL_RETURN_IF_ERROR(fields.status());
  return index;
}

Status Damaged(const base::Digest& digest, const Path& path, uint64_t size) {
  return base::DataLoss("blob " + digest.ToString() + " is damaged: the " + std::to_string(size) +
                            " bytes of " + path.string() + " have another digest",
                        "restore that file from a copy, or go back to a version that verifies");
}

}  // namespace

DiskStore::DiskStore(Path directory) : directory_(std::move(directory)) {}
DiskStore::~DiskStore() = default;

Path DiskStore::BlobPath(const base::Digest& digest) const {
  return directory_ / "blobs" / "sha256" / digest.Hex();
}

Status DiskStore::MakeLayout() {
  FL_RETURN_IF_ERROR(base::MakeDirectories(directory_ / "blobs" / "sha256"));
  FL_RETURN_IF_ERROR(base::SyncDirectory(directory_ / "blobs"));
  std::error_code ignored;
  if (!std::filesystem::exists(directory_ / "oci-layout", ignored)) {
    FL_RETURN_IF_ERROR(base::WriteFileAtomically(directory_ / "oci-layout", kLayout));
  }
  // Last, since a folder with an index is a repository.
  if (!std::filesystem::exists(directory_ / "index.json", ignored)) {
    const json index = {{"schemaVersion", 2},
                        {"mediaType", std::string(internal::kIndexType)},
                        {"manifests", json::array()}};
    FL_RETURN_IF_ERROR(base::WriteFileAtomically(directory_ / "index.json", base::DumpJson(index)));
    const Path parent = std::filesystem::absolute(directory_, ignored).parent_path();
    FL_RETURN_IF_ERROR(base::SyncDirectory(parent));
  }
  return base::OkStatus();
}

Status DiskStore::CleanLeftovers() {
  FL_RETURN_IF_ERROR(base::RemoveTree(directory_ / "staging"));
  for (const Path& folder : {directory_, directory_ / "blobs" / "sha256"}) {
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error)) {
      if (it->path().extension() == ".tmp") FL_RETURN_IF_ERROR(base::RemoveFile(it->path()));
    }
    if (error) return base::FromErrno(error.value(), "list " + folder.string());
  }
  return base::OkStatus();
}

Result<std::unique_ptr<WriterHold>> DiskStore::HoldForWriting(std::string_view owner) {
  FL_RETURN_IF_ERROR(base::MakeDirectories(directory_));
  FL_ASSIGN_OR_RETURN(base::FileLock lock,
                      base::FileLock::Acquire(directory_ / "writer.lock", owner));
  FL_RETURN_IF_ERROR(MakeLayout());
  FL_RETURN_IF_ERROR(CleanLeftovers());
  return std::unique_ptr<WriterHold>(std::make_unique<LockHold>(std::move(lock)));
}

struct DiskStore::Index {
  json document;  ///< as in the file, with what others put there
  TagSnapshot tags;
};

Result<std::shared_ptr<const DiskStore::Index>> DiskStore::LoadIndex() {
  const Path path = directory_ / "index.json";
  const Result<std::string> text = base::ReadFile(path, kIndexLimit);
  if (text.status().code() == base::Code::kNotFound) {
    return base::NotFound("there is no model repository in " + directory_.string());
  }
  FL_RETURN_IF_ERROR(text.status());
  auto index = std::make_shared<Index>();
  index->tags.revision = base::Digest::Of(*text).Hex();
  {
    const std::lock_guard lock(index_mutex_);
    if (index_ != nullptr && index_->tags.revision == index->tags.revision) return index_;
  }
  FL_ASSIGN_OR_RETURN(index->document, ParseIndex(*text, path));
  for (const json& entry : index->document["manifests"]) {
    const std::string_view name = RefName(entry);
    if (name.empty()) continue;
    FL_ASSIGN_OR_RETURN(
        Descriptor descriptor,
        internal::DescriptorFromJson(entry, path.string() + ": tag " + std::string(name)));
    index->tags.tags.emplace(name, std::move(descriptor));
  }
  const std::lock_guard lock(index_mutex_);
  index_ = std::move(index);
  return index_;
}

Result<TagSnapshot> DiskStore::ReadTags() {
  FL_ASSIGN_OR_RETURN(const std::shared_ptr<const Index> index, LoadIndex());
  return index->tags;
}

Result<std::string> DiskStore::CommitTags(const std::vector<TagChange>& changes,
                                          const std::string& expected_revision) {
  const std::lock_guard lock(commit_mutex_);
  FL_ASSIGN_OR_RETURN(const std::shared_ptr<const Index> before, LoadIndex());
  if (before->tags.revision != expected_revision) {
    return base::Aborted(directory_.string() + " was changed by somebody else");
  }
  auto after = std::make_shared<Index>(*before);
  std::map<std::string_view, const TagChange*> wanted;
  for (const TagChange& change : changes) wanted[change.tag] = &change;
  json entries = json::array();
  for (json& entry : after->document["manifests"]) {
    if (!wanted.contains(RefName(entry))) entries.push_back(std::move(entry));
  }
  for (const auto& [tag, change] : wanted) {
    after->tags.tags.erase(change->tag);
    if (!change->target) continue;
    after->tags.tags.emplace(tag, *change->target);
    json entry = internal::DescriptorToJson(*change->target);
    entry["annotations"] = {{std::string(kRefName), std::string(tag)}};
    entries.push_back(std::move(entry));
  }
  after->document["manifests"] = std::move(entries);
  const std::string text = base::DumpJson(after->document);
  // What the tags will name is there before they do.
  if (blobs_added_) {
    FL_RETURN_IF_ERROR(base::SyncDirectory(directory_ / "blobs" / "sha256"));
    blobs_added_ = false;
  }
  FL_RETURN_IF_ERROR(base::WriteFileAtomically(directory_ / "index.json", text));
  after->tags.revision = base::Digest::Of(text).Hex();
  const std::lock_guard index_lock(index_mutex_);
  index_ = after;
  return after->tags.revision;
}

Result<base::Digest> DiskStore::PutBlob(std::string_view bytes) {
  const base::Digest digest = base::Digest::Of(bytes);
  const Result<std::string> existing = base::ReadFile(BlobPath(digest), bytes.size());
  if (existing.ok() && *existing == bytes) return digest;
  FL_ASSIGN_OR_RETURN(base::FileWriter writer, base::FileWriter::Create(BlobPath(digest)));
  FL_RETURN_IF_ERROR(writer.Write(base::AsBytes(bytes)));
  FL_RETURN_IF_ERROR(CommitBlob(std::move(writer)));
  blobs_added_ = true;
  return digest;
}

Result<Descriptor> DiskStore::PutManifest(std::string_view bytes, std::string_view media_type) {
  FL_ASSIGN_OR_RETURN(const base::Digest digest, PutBlob(bytes));
  return Descriptor{std::string(media_type), digest, bytes.size()};
}

Status DiskStore::PutFile(const Path& file, const base::Digest& digest, uint64_t size) {
  const Path target = BlobPath(digest);
  const Result<base::UniqueFd> source = OpenForReading(file);
  if (source.status().code() == base::Code::kNotFound && OpenBlob(digest, false).ok()) {
    return base::OkStatus();
  }
  FL_RETURN_IF_ERROR(source.status());
  struct stat info;
  if (::fstat(source->get(), &info) != 0) return Errno("stat", file);
  if (static_cast<uint64_t>(info.st_size) != size) {
    return base::InvalidArgument(file.string() + " has " + std::to_string(info.st_size) +
                                 " bytes, not " + std::to_string(size));
  }
  std::error_code error;
  if (std::filesystem::equivalent(file.parent_path(), directory_ / "staging", error) && !error) {
    FL_RETURN_IF_ERROR(SyncFile(source->get(), file));
    FL_RETURN_IF_ERROR(base::Failpoint("registry.file.rename"));
    if (::rename(file.c_str(), target.c_str()) != 0)
      return Errno("rename " + file.string(), target);
    blobs_added_ = true;
    // Its writer has just hashed it; this process need not do so again.
    FL_ASSIGN_OR_RETURN(const Identity identity, Identify(source->get(), target));
    const std::lock_guard lock(verified_mutex_);
    verified_[digest] = identity;
    return base::OkStatus();
  }
  FL_ASSIGN_OR_RETURN(base::FileWriter writer, base::FileWriter::Create(target, size));
  base::Sha256 hash;
  FL_RETURN_IF_ERROR(ReadAll(source->get(), file, [&](std::span<const uint8_t> bytes) {
    hash.Update(bytes);
    return writer.Write(bytes);
  }));
  if (std::move(hash).Finish() != digest) {
    return base::DataLoss(file.string() + " does not have the digest " + digest.ToString());
  }
  FL_RETURN_IF_ERROR(CommitBlob(std::move(writer)));
  blobs_added_ = true;
  return base::OkStatus();
}

Result<Path> DiskStore::StagingDirectory() {
  const Path staging = directory_ / "staging";
  FL_RETURN_IF_ERROR(base::MakeDirectories(staging));
  return staging;
}

Result<uint64_t> DiskStore::StatBlob(const base::Digest& digest) {
  struct stat info;
  if (::stat(BlobPath(digest).c_str(), &info) != 0) {
    return errno == ENOENT ? base::NotFound("blob " + digest.ToString() + " is not in " + Name())
                           : Errno("stat", BlobPath(digest));
  }
  return static_cast<uint64_t>(info.st_size);
}

Result<std::string> DiskStore::ReadBlob(const base::Digest& digest, uint64_t limit) {
  const Path path = BlobPath(digest);
  Result<std::string> bytes = base::ReadFile(path, limit);
  if (bytes.status().code() == base::Code::kNotFound) {
    return base::NotFound("blob " + digest.ToString() + " is not in " + Name());
  }
  if (bytes.ok() && base::Digest::Of(*bytes) != digest) {
    return Damaged(digest, path, bytes->size());
  }
  return bytes;
}

Result<DiskStore::Identity> DiskStore::Identify(int fd, const Path& path) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return Errno("stat", path);
  return Identity{info.st_dev,         info.st_ino,          info.st_size,
                  info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                  info.st_ctim.tv_nsec};
}

Result<OpenedBlob> DiskStore::OpenBlob(const base::Digest& digest, bool force) {
  const Path path = BlobPath(digest);
  const Result<base::UniqueFd> fd = OpenForReading(path);
  if (fd.status().code() == base::Code::kNotFound) {
    return base::NotFound("blob " + digest.ToString() + " is not in " + Name());
  }
  FL_RETURN_IF_ERROR(fd.status());
  FL_ASSIGN_OR_RETURN(const Identity identity, Identify(fd->get(), path));
  bool known = false;
  if (!force) {
    const std::lock_guard lock(verified_mutex_);
    const auto found = verified_.find(digest);
    known = found != verified_.end() && found->second == identity;
  }
  if (!known) {
    base::Sha256 hash;
    uint64_t size = 0;
    FL_RETURN_IF_ERROR(ReadAll(fd->get(), path, [&](std::span<const uint8_t> bytes) {
      hash.Update(bytes);
      size += bytes.size();
      return base::OkStatus();
    }));
    if (std::move(hash).Finish() != digest) return Damaged(digest, path, size);
    const std::lock_guard lock(verified_mutex_);
    verified_[digest] = identity;
  }
  FL_ASSIGN_OR_RETURN(base::MappedFile file, base::MappedFile::Open(path));
  return OpenedBlob{path, digest, std::move(file)};
}

Status DiskStore::DeleteBlob(const base::Digest& digest) {
  {
    const std::lock_guard lock(verified_mutex_);
    verified_.erase(digest);
  }
  return base::RemoveFile(BlobPath(digest));
}

Result<std::vector<StoredBlob>> DiskStore::ListBlobs() {
  std::vector<StoredBlob> blobs;
  const Path folder = directory_ / "blobs" / "sha256";
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const Result<base::Digest> digest =
        base::Digest::Parse("sha256:" + it->path().filename().string());
    struct stat info;
    // What is not named as a blob is not ours; what is gone by now needs no listing.
    if (!digest.ok() || ::stat(it->path().c_str(), &info) != 0) continue;
    blobs.push_back({*digest, static_cast<uint64_t>(info.st_size),
                     base::Time(std::chrono::seconds(info.st_mtim.tv_sec) +
                                std::chrono::nanoseconds(info.st_mtim.tv_nsec))});
  }
  if (error) return base::FromErrno(error.value(), "list " + folder.string());
  return blobs;
}

}  // namespace fl::registry
