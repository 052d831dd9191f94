#include "registry/testing/faulty_store.h"

#include <utility>

namespace fl::registry {

using base::Result;
using base::Status;

void Faults::Arm(int call, When when, Status error) {
  const std::lock_guard lock(mutex_);
  calls_ = 0;
  fails_at_ = call;
  when_ = when;
  error_ = std::move(error);
}

int Faults::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

std::optional<Faults::When> Faults::Next(Status* error) {
  const std::lock_guard lock(mutex_);
  if (++calls_ != fails_at_) return std::nullopt;
  *error = error_;
  return when_;
}

FaultyStore::FaultyStore(std::unique_ptr<ContentStore> inner, std::shared_ptr<Faults> faults)
    : inner_(std::move(inner)), faults_(std::move(faults)) {}

template <typename Call>
auto FaultyStore::Pass(Call call) -> decltype(call()) {
  Status error;
  const std::optional<Faults::When> fault = faults_->Next(&error);
  if (!fault) return call();
  if (*fault == Faults::When::kAfter) {
    // The answer is lost, whatever it was.
    std::ignore = call();
  }
  return error;
}

Result<std::unique_ptr<WriterHold>> FaultyStore::HoldForWriting(std::string_view owner) {
  return Pass([&] { return inner_->HoldForWriting(owner); });
}
Result<TagSnapshot> FaultyStore::ReadTags() {
  return Pass([&] { return inner_->ReadTags(); });
}
Result<std::string> FaultyStore::CommitTags(const std::vector<TagChange>& changes,
                                            const std::string& expected_revision) {
  Status error;
  const std::optional<Faults::When> fault = faults_->Next(&error);
  if (!fault) return inner_->CommitTags(changes, expected_revision);
  if (*fault == Faults::When::kAfter) {
    std::ignore = inner_->CommitTags(changes, expected_revision);
  } else if (*fault == Faults::When::kWithin && !inner_->Capabilities().atomic_tags) {
    std::ignore = inner_->CommitTags({changes.front()}, expected_revision);
  }
  return error;
}
Result<base::Digest> FaultyStore::PutBlob(std::string_view bytes) {
  return Pass([&] { return inner_->PutBlob(bytes); });
}
Result<Descriptor> FaultyStore::PutManifest(std::string_view bytes, std::string_view media_type) {
  return Pass([&] { return inner_->PutManifest(bytes, media_type); });
}
Status FaultyStore::PutFile(const base::Path& file, const base::Digest& digest, uint64_t size) {
  return Pass([&] { return inner_->PutFile(file, digest, size); });
}
Result<base::Path> FaultyStore::StagingDirectory() {
  return Pass([&] { return inner_->StagingDirectory(); });
}
Result<uint64_t> FaultyStore::StatBlob(const base::Digest& digest) {
  return Pass([&] { return inner_->StatBlob(digest); });
}
Result<std::string> FaultyStore::ReadBlob(const base::Digest& digest, uint64_t limit) {
  return Pass([&] { return inner_->ReadBlob(digest, limit); });
}
Result<OpenedBlob> FaultyStore::OpenBlob(const base::Digest& digest, bool force) {
  return Pass([&] { return inner_->OpenBlob(digest, force); });
}
Status FaultyStore::DeleteBlob(const base::Digest& digest) {
  return Pass([&] { return inner_->DeleteBlob(digest); });
}
Result<std::vector<StoredBlob>> FaultyStore::ListBlobs() {
  return Pass([&] { return inner_->ListBlobs(); });
}

}  // namespace fl::registry
