#include "registry/memory_store.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "base/encoding.h"

namespace fl::registry {
namespace {

using base::Result;
using base::Status;

class MemoryHold final : public WriterHold {
 public:
  explicit MemoryHold(std::shared_ptr<MemoryRepository> repository)
      : repository_(std::move(repository)) {}
  ~MemoryHold() override {
    const std::lock_guard lock(repository_->mutex);
    repository_->holder.clear();
  }

 private:
  const std::shared_ptr<MemoryRepository> repository_;
};

Status NoBlob(const base::Digest& digest) {
  return base::NotFound("blob " + digest.ToString() + " is not in memory");
}

Status Damaged(const base::Digest& digest, uint64_t size) {
  return base::DataLoss("blob " + digest.ToString() + " is damaged: its " + std::to_string(size) +
                        " bytes have another digest");
}

}  // namespace

MemoryStore::MemoryStore(std::shared_ptr<MemoryRepository> repository,
                         StoreCapabilities capabilities, base::Clock& clock)
    : repository_(std::move(repository)), capabilities_(capabilities), clock_(clock) {}

MemoryStore::~MemoryStore() {
  // Nobody is left to be told; what stays behind is in the system's folder for such files.
  if (!scratch_.empty()) std::ignore = base::RemoveTree(scratch_);
}

Result<std::unique_ptr<WriterHold>> MemoryStore::HoldForWriting(std::string_view owner) {
  const std::lock_guard lock(repository_->mutex);
  repository_->made = true;
  if (!capabilities_.exclusive_hold) return std::make_unique<WriterHold>();
  if (!repository_->holder.empty()) {
    return base::FailedPrecondition("the repository in memory is held by " + repository_->holder);
  }
  repository_->holder = owner.empty() ? "somebody" : owner;
  return std::unique_ptr<WriterHold>(std::make_unique<MemoryHold>(repository_));
}

Result<TagSnapshot> MemoryStore::ReadTags() {
  const std::lock_guard lock(repository_->mutex);
  if (!repository_->made) return base::NotFound("there is no model repository in memory");
  return TagSnapshot{repository_->tags, std::to_string(repository_->revision)};
}

Result<std::string> MemoryStore::CommitTags(const std::vector<TagChange>& changes,
                                            const std::string& expected_revision) {
  const std::lock_guard lock(repository_->mutex);
  if (capabilities_.compare_and_swap &&
      std::to_string(repository_->revision) != expected_revision) {
    return base::Aborted("the repository in memory was changed by somebody else");
  }
  for (const TagChange& change : changes) {
    if (change.target) {
      repository_->tags[change.tag] = *change.target;
    } else {
      repository_->tags.erase(change.tag);
    }
  }
  return std::to_string(++repository_->revision);
}

Result<base::Digest> MemoryStore::PutBlob(std::string_view bytes) {
  const base::Digest digest = base::Digest::Of(bytes);
  const std::lock_guard lock(repository_->mutex);
  repository_->blobs[digest] = {std::string(bytes), clock_.Now()};
  return digest;
}

Result<Descriptor> MemoryStore::PutManifest(std::string_view bytes, std::string_view media_type) {
  FL_ASSIGN_OR_RETURN(const base::Digest digest, PutBlob(bytes));
  return Descriptor{std::string(media_type), digest, bytes.size()};
}

Status MemoryStore::PutFile(const base::Path& file, const base::Digest& digest, uint64_t size) {
  Result<std::string> bytes = base::ReadFile(file);
  if (bytes.status().code() == base::Code::kNotFound && StatBlob(digest).ok()) {
    return base::OkStatus();
  }
  FL_RETURN_IF_ERROR(bytes.status());
  if (bytes->size() != size) {
    return base::InvalidArgument(file.string() + " has " + std::to_string(bytes->size()) +
                                 " bytes, not " + std::to_string(size));
  }
  std::error_code error;
  FL_ASSIGN_OR_RETURN(const base::Path staging, StagingDirectory());
  const bool staged = std::filesystem::equivalent(file.parent_path(), staging, error) && !error;
  if (!staged && base::Digest::Of(*bytes) != digest) {
    return base::DataLoss(file.string() + " does not have the digest " + digest.ToString());
  }
  {
    const std::lock_guard lock(repository_->mutex);
    repository_->blobs[digest] = {*std::move(bytes), clock_.Now()};
  }
  return staged ? base::RemoveFile(file) : base::OkStatus();
}

Result<base::Path> MemoryStore::Scratch() {
  const std::lock_guard lock(scratch_mutex_);
  if (scratch_.empty()) {
    static std::atomic<uint64_t> counter{0};
    std::error_code error;
    base::Path path = std::filesystem::temp_directory_path(error);
    if (error) return base::FromErrno(error.value(), "find the folder for temporary files");
    path /= "fl-registry-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    FL_RETURN_IF_ERROR(base::MakeDirectories(path / "staging", 0700));
    FL_RETURN_IF_ERROR(base::MakeDirectories(path / "opened", 0700));
    scratch_ = path;
  }
  return scratch_;
}

Result<base::Path> MemoryStore::StagingDirectory() {
  FL_ASSIGN_OR_RETURN(const base::Path scratch, Scratch());
  return scratch / "staging";
}

Result<uint64_t> MemoryStore::StatBlob(const base::Digest& digest) {
  const std::lock_guard lock(repository_->mutex);
  const auto found = repository_->blobs.find(digest);
  if (found == repository_->blobs.end()) return NoBlob(digest);
  return found->second.bytes.size();
}

Result<std::string> MemoryStore::ReadBlob(const base::Digest& digest, uint64_t limit) {
  std::string bytes;
  {
    const std::lock_guard lock(repository_->mutex);
    const auto found = repository_->blobs.find(digest);
    if (found == repository_->blobs.end()) return NoBlob(digest);
    bytes = found->second.bytes;
  }
  if (bytes.size() > limit) {
    return base::OutOfRange("blob " + digest.ToString() + " is larger than " +
                            std::to_string(limit) + " bytes");
  }
  if (base::Digest::Of(bytes) != digest) return Damaged(digest, bytes.size());
  return bytes;
}

Result<OpenedBlob> MemoryStore::OpenBlob(const base::Digest& digest, bool /*force*/) {
  FL_ASSIGN_OR_RETURN(const std::string bytes, ReadBlob(digest, UINT64_MAX));
  FL_ASSIGN_OR_RETURN(const base::Path scratch, Scratch());
  const base::Path path = scratch / "opened" / digest.Hex();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    FL_ASSIGN_OR_RETURN(base::FileWriter writer, base::FileWriter::Create(path));
    FL_RETURN_IF_ERROR(writer.Write(base::AsBytes(bytes)));
    FL_RETURN_IF_ERROR(std::move(writer).Commit(/*durable=*/false));
  }
  FL_ASSIGN_OR_RETURN(base::MappedFile file, base::MappedFile::Open(path));
  return OpenedBlob{path, digest, std::move(file)};
}

Status MemoryStore::DeleteBlob(const base::Digest& digest) {
  const std::lock_guard lock(repository_->mutex);
  repository_->blobs.erase(digest);
  return base::OkStatus();
}

Result<std::vector<StoredBlob>> MemoryStore::ListBlobs() {
  if (!capabilities_.list_blobs) return base::Unimplemented("this store does not list its blobs");
  std::vector<StoredBlob> blobs;
  const std::lock_guard lock(repository_->mutex);
  for (const auto& [digest, blob] : repository_->blobs) {
    blobs.push_back({digest, blob.bytes.size(), blob.modified});
  }
  return blobs;
}

}  // namespace fl::registry
