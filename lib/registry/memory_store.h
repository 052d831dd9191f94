#pragma once

/// A repository in memory, for tests and for runs that leave nothing behind. Stores that share one
/// MemoryRepository see the same content, as processes that share a folder do.

#include <map>
#include <memory>
#include <mutex>

#include "registry/store.h"

namespace fl::registry {

/// The content, shared by the stores that are opened on it. Thread-safe through its stores.
struct MemoryRepository {
  std::mutex mutex;
  bool made = false;
  std::string holder;  ///< owner text of the writer, empty where none
  uint64_t revision = 0;
  std::map<std::string, Descriptor, std::less<>> tags;
  struct Blob {
    std::string bytes;
    base::Time modified;
  };
  std::map<base::Digest, Blob> blobs;
};

/// Thread-safe. `capabilities` may take away what a poorer store would lack.
class MemoryStore final : public ContentStore {
 public:
  explicit MemoryStore(std::shared_ptr<MemoryRepository> repository,
                       StoreCapabilities capabilities = {true, true, true, true},
                       base::Clock& clock = base::Clock::System());
  ~MemoryStore() override;

  std::string Name() const override { return "memory"; }
  StoreCapabilities Capabilities() const override { return capabilities_; }
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
  base::Result<base::Path> Scratch();

  const std::shared_ptr<MemoryRepository> repository_;
  const StoreCapabilities capabilities_;
  base::Clock& clock_;
  std::mutex scratch_mutex_;
  base::Path scratch_;  ///< a temporary folder for staged and opened files, made when needed
};

}  // namespace fl::registry
