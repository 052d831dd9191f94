#pragma once

/// A repository as an OCI image layout in a folder: `oci-layout`, `index.json` (the tags),
/// `blobs/sha256/…`. Any tool that knows OCI layouts reads it (`skopeo inspect oci:DIR:v3`).
/// README.md of this module has the whole format.

#include <atomic>
#include <map>
#include <mutex>
#include <tuple>

#include "registry/store.h"

namespace fl::registry {

/// Atomic tags and compare-and-swap: `index.json` is replaced whole, by the holder of the lock
/// `writer.lock`. Thread-safe.
class DiskStore final : public ContentStore {
 public:
  /// Nothing is read or made yet.
  explicit DiskStore(base::Path directory);
  ~DiskStore() override;

  std::string Name() const override { return directory_.string(); }
  StoreCapabilities Capabilities() const override { return {true, true, true, true}; }
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
  /// Device, inode, size, and times of change: the same file with the same bytes, unless the disk
  /// itself lies.
  using Identity = std::tuple<uint64_t, uint64_t, uint64_t, int64_t, int64_t, int64_t, int64_t>;

  /// The content of index.json.
  struct Index;

  base::Path BlobPath(const base::Digest& digest) const;
  static base::Result<Identity> Identify(int fd, const base::Path& path);
  /// What index.json says now; parsed only where it has changed.
  base::Result<std::shared_ptr<const Index>> LoadIndex();
  base::Status MakeLayout();
  base::Status CleanLeftovers();

  const base::Path directory_;
  std::mutex commit_mutex_;
  std::atomic<bool> blobs_added_ = false;  ///< names in blobs/sha256 may not be durable yet
  std::mutex index_mutex_;
  std::shared_ptr<const Index> index_;  ///< as last read or written
  std::mutex verified_mutex_;
  std::map<base::Digest, Identity> verified_;
};

}  // namespace fl::registry
