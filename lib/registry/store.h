#pragma once

/// The seam between a model's registry and where it is kept: a folder (disk_store.h), memory
/// (memory_store.h), later S3 and OCI registries. One ContentStore holds one model's repository and
/// knows nothing of models: immutable blobs named by their digest, manifests (small blobs that name
/// other blobs), and a few tags, names that move. What the tags reach is visible; all else is not.
///
/// The contract, held by testing/store_contract.h against every implementation:
///
/// - **Thread-safe.** Readers need no hold; any number of processes read while one writes.
/// - **Blobs.** A Put that returned OK is there whole, and Puts of the same bytes succeed again. A
///   blob is never visible under its digest with fewer or other bytes because of a crash, a full
///   disk or a cut connection. Every read checks size and digest: kDataLoss names a blob that is
///   not what its digest says, kNotFound one that is not there.
/// - **Durability.** Nothing is promised to survive a crash until a CommitTags that came after it
///   returned OK; then everything put before it survives, and so do the tags.
/// - **Tags.** CommitTags makes the changes visible to every later ReadTags. Where `atomic_tags`,
///   a reader sees all of one commit or nothing of it, also after a crash; else they become visible
///   in the order given, and a crash may leave a beginning of them: callers put the change that
///   makes the others matter last. Tags set by others (an OCI tool) are kept.
/// - **Races.** CommitTags names the revision its caller has seen. Where `compare_and_swap`, a
///   commit on any other revision is kAborted and changes nothing (re-read, decide again); else the
///   hold is what keeps a second writer out.
/// - **Retries.** Every call may be repeated after kUnavailable; the caller, or a decorator, does
///   so. A CommitTags that failed with kUnavailable may have been made: re-read before repeating.
/// - **Full disk.** kResourceExhausted, and all that was visible before still is.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/status.h"

namespace fl::registry {

/// What a tag or a manifest says about a blob, as in the OCI image specification.
struct Descriptor {
  std::string media_type;
  base::Digest digest;
  uint64_t size = 0;
  friend bool operator==(const Descriptor&, const Descriptor&) = default;
};

/// All tags at one moment.
struct TagSnapshot {
  std::map<std::string, Descriptor, std::less<>> tags;
  /// Changes whenever a tag does; means nothing else.
  std::string revision;
};

/// Points `tag` at `target`, or removes it where there is none.
struct TagChange {
  std::string tag;
  std::optional<Descriptor> target;
};

/// A blob as ListBlobs finds it.
struct StoredBlob {
  base::Digest digest;
  uint64_t size = 0;
  base::Time modified;
};

/// A blob as a local file whose bytes were checked. It stays readable while this object lives, also
/// when the blob is removed from the store meanwhile (the path may be gone then, the mapping not).
struct OpenedBlob {
  base::Path path;
  base::Digest digest;
  base::MappedFile file;
};

/// What a store offers.
struct StoreCapabilities {
  bool atomic_tags = false;       ///< one CommitTags is seen whole or not at all
  bool compare_and_swap = false;  ///< a CommitTags on an old revision is refused
  bool list_blobs = false;        ///< ListBlobs works, so that garbage can be found
  bool exclusive_hold = false;    ///< HoldForWriting keeps every other writer out
};

/// The right to write, given up when dropped or when the process dies.
class WriterHold {
 public:
  virtual ~WriterHold() = default;
};

class ContentStore {
 public:
  virtual ~ContentStore() = default;

  /// Where it is, for messages, e.g. "/srv/registry/digits".
  virtual std::string Name() const = 0;
  virtual StoreCapabilities Capabilities() const = 0;

  /// Makes the repository where there is none and takes the right to write to it. Where
  /// `exclusive_hold`, kFailedPrecondition names who holds it (`owner` as that writer gave it);
  /// else writers meet at CommitTags.
  virtual base::Result<std::unique_ptr<WriterHold>> HoldForWriting(std::string_view owner) = 0;

  /// All tags. kNotFound where there is no repository; kDataLoss where its index cannot be read.
  virtual base::Result<TagSnapshot> ReadTags() = 0;
  /// Makes `changes`, in order, on top of `expected_revision` (from ReadTags or the last commit),
  /// and returns the new revision. kAborted, kUnavailable and kResourceExhausted as said above.
  virtual base::Result<std::string> CommitTags(const std::vector<TagChange>& changes,
                                               const std::string& expected_revision) = 0;

  /// Stores `bytes` and returns their digest.
  virtual base::Result<base::Digest> PutBlob(std::string_view bytes) = 0;
  /// Stores a manifest. In an OCI registry that is another call than for a blob.
  virtual base::Result<Descriptor> PutManifest(std::string_view bytes,
                                               std::string_view media_type) = 0;
  /// Stores a local file of `size` bytes whose digest is `digest`, as its caller found while
  /// writing it; readers check. A file inside StagingDirectory() is consumed (renamed where the
  /// store is a disk), any other is copied and its digest checked on the way: kDataLoss where it
  /// differs. A file that is gone, while the store has that blob (a repeated call), is OK; else
  /// kNotFound. kInvalidArgument where the size differs.
  virtual base::Status PutFile(const base::Path& file, const base::Digest& digest,
                               uint64_t size) = 0;
  /// A local folder, made on the first call, where files for PutFile are best written. What a
  /// crashed writer left there is removed by the next hold.
  virtual base::Result<base::Path> StagingDirectory() = 0;

  /// The size of a blob by its metadata alone. kNotFound.
  virtual base::Result<uint64_t> StatBlob(const base::Digest& digest) = 0;
  /// A small blob or manifest, checked. kOutOfRange where it is larger than `limit` bytes.
  virtual base::Result<std::string> ReadBlob(const base::Digest& digest, uint64_t limit) = 0;
  /// A blob of any size as a local file, checked. A blob that this store object has checked before,
  /// and whose file is the same (inode, size, time of change), is not hashed again; `force` hashes
  /// it anyway.
  virtual base::Result<OpenedBlob> OpenBlob(const base::Digest& digest, bool force = false) = 0;

  /// Removes a blob or manifest; one that is not there is fine.
  virtual base::Status DeleteBlob(const base::Digest& digest) = 0;
  /// Every blob there is, whether reachable or not. kUnimplemented where `list_blobs` is false.
  virtual base::Result<std::vector<StoredBlob>> ListBlobs() = 0;
};

}  // namespace fl::registry
