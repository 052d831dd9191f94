#pragma once

/// The log of a program whose output nobody bounds: a pipe to give to it, and a thread that copies
/// what arrives into a file that is kept small.

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace fl::trainer::internal {

/// Appends to `path`; when it has half of `limit` bytes it becomes `path`.1, in place of the one
/// before. Where the file cannot be written (a full disk) output is dropped: a log is not worth an
/// update. Thread-safe.
class BoundedLog {
 public:
  static base::Result<std::unique_ptr<BoundedLog>> Open(const base::Path& path, uint64_t limit);
  virtual ~BoundedLog() = default;

  /// A line of our own.
  virtual void Write(std::string_view line) = 0;
  /// A new pipe whose end is given to a program; closed by the caller once the program runs. All
  /// pipes are copied until their last writer is gone or the log is destroyed.
  virtual base::Result<base::UniqueFd> OpenPipe() = 0;
};

}  // namespace fl::trainer::internal
