#pragma once

#include <cstdint>
#include <span>

#include "base/digest.h"
#include "base/file.h"
#include "base/status.h"
#include "transport/client.h"

namespace fl::agent::internal {

/// A blob that is coming: bytes are appended to a file that survives interruptions, and hashed on
/// the way. It takes the answer to a GET with or without a range. One thread.
class PartFile final : public transport::BodyWriter {
 public:
  /// Opens or makes the file; what an earlier attempt left is hashed and counts. `size`: bytes of
  /// the whole blob. kResourceExhausted where the disk has no room for the rest.
  static base::Result<PartFile> Open(const base::Path& path, uint64_t size);
  PartFile(PartFile&&) noexcept = default;
  PartFile& operator=(PartFile&&) noexcept = default;

  uint64_t received() const { return received_; }
  bool complete() const { return received_ == size_; }

  /// kDataLoss where the answer is another range than the one asked for.
  base::Status Start(int http_status, const transport::Headers& headers) override;
  /// kDataLoss past the announced size.
  base::Status Write(std::span<const uint8_t> bytes) override;

  /// The digest of all bytes; the object is used up.
  base::Digest Finish() && { return std::move(hash_).Finish(); }

 private:
  PartFile(base::UniqueFd fd, base::Path path, uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}
  base::Status HashWhatIsThere();
  base::Status StartOver();

  base::UniqueFd fd_;
  base::Path path_;
  uint64_t size_ = 0;
  uint64_t received_ = 0;
  base::Sha256 hash_;
};

/// The first byte of "bytes FIRST-LAST/TOTAL" where it is well-formed and says that the whole has
/// `size` bytes; else kDataLoss.
base::Result<uint64_t> FirstByteOfRange(std::string_view content_range, uint64_t size);

}  // namespace fl::agent::internal
