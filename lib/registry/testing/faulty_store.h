#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "registry/store.h"

namespace fl::registry {

/// When calls of a FaultyStore fail. Shared by the stores of one test; thread-safe.
class Faults {
 public:
  enum class When {
    kBefore,  ///< the call has no effect
    kAfter,   ///< the call is made, its answer is lost
    kWithin,  ///< a CommitTags without atomic tags makes the first change only; else as kBefore
  };

  /// The `call`-th call from now (from 1) fails with `error`; 0 disarms.
  void Arm(int call, When when, base::Status error);
  /// Calls since Arm.
  int calls() const;

 private:
  friend class FaultyStore;
  /// The fault of this call, if it has one.
  std::optional<When> Next(base::Status* error);

  mutable std::mutex mutex_;
  int calls_ = 0;
  int fails_at_ = 0;
  When when_ = When::kBefore;
  base::Status error_;
};

/// A store whose calls fail when the test says so; it passes all others on. (What a test needs of
/// the file system's own faults it makes with failpoints, small disks and limits.)
class FaultyStore final : public ContentStore {
 public:
  FaultyStore(std::unique_ptr<ContentStore> inner, std::shared_ptr<Faults> faults);

  std::string Name() const override { return inner_->Name(); }
  StoreCapabilities Capabilities() const override { return inner_->Capabilities(); }
  base::Result<std::unique_ptr<WriterHold>> HoldForWriting(std::string_view owner) override;
  base::Result<TagSnapshot> ReadTags() override;
  base::Result<std::string> CommitTags(const std::vector<TagChange>& changes,
                                       const std::string& expected_revision) override;
  base::Result<base::Digest> PutBlob(std::string_view bytes) override;
  base::Result<Descriptor> PutManifest(std::string_view bytes,
                                       std::string_view media_type) override;
  base::Status PutFile(const base::Path& file, const base::Digest& digest, uint64_t size) override;
  base::Result<base::Path> StagingDirectory() override;
  base::Result<uint64_t> StatBlob(const base::Digest& digest) override;
  base::Result<std::string> ReadBlob(const base::Digest& digest, uint64_t limit) override;
  base::Result<OpenedBlob> OpenBlob(const base::Digest& digest, bool force) override;
  base::Status DeleteBlob(const base::Digest& digest) override;
  base::Result<std::vector<StoredBlob>> ListBlobs() override;

 private:
  template <typename Call>
  auto Pass(Call call) -> decltype(call());

  const std::unique_ptr<ContentStore> inner_;
  const std::shared_ptr<Faults> faults_;
};

}  // namespace fl::registry
