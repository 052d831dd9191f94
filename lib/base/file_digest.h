#pragma once

#include <cstdint>

#include "base/digest.h"
#include "base/file.h"
#include "base/status.h"

namespace fl::base {

struct FileDigest {
  Digest digest;
  uint64_t size = 0;
};

/// SHA-256 and size of a whole file, read once in pieces. kNotFound, kPermissionDenied,
/// kUnavailable. Thread-safe.
Result<FileDigest> DigestOfFile(const Path& path);

}  // namespace fl::base
