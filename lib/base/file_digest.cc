#include "base/file_digest.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace fl::base {

Result<FileDigest> DigestOfFile(const Path& path) {
  constexpr size_t kPieceBytes = size_t{256} << 10;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return FromErrno(errno, "open " + path.string());
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  std::vector<uint8_t> piece(kPieceBytes);
  Sha256 hash;
  uint64_t size = 0;
  for (;;) {
    const ssize_t count = ::read(fd.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FromErrno(errno, "read " + path.string());
    if (count == 0) return FileDigest{std::move(hash).Finish(), size};
    hash.Update({piece.data(), static_cast<size_t>(count)});
    size += static_cast<uint64_t>(count);
  }
}

}  // namespace fl::base
