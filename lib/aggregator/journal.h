#pragma once

/// An append-only file of JSON lines, each with a checksum, from which state is folded again after
/// a crash.
///
/// A line is the first 16 hex digits of the SHA-256 of the JSON, a blank, the JSON, a newline. A
/// crash can leave the last line incomplete; Open drops it. A damaged line before the last is
/// kDataLoss: the file was changed by something else.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace fl::aggregator {

/// One thread at a time.
class Journal {
 public:
  struct Opened;
  /// Makes the file (and its folder) where there is none; reads the lines where there is one.
  static base::Result<Opened> Open(const base::Path& path);

  /// Appends one line; with `sync` it survives a power cut when this returns. After an error
  /// (kResourceExhausted on a full disk) the file is as before.
  base::Status Append(std::string_view json, bool sync);

  /// Replaces all lines by these, so that a crash leaves the old ones or the new. After an error
  /// the journal goes on with what the file has: the old lines, but the new where only the sync of
  /// the folder failed.
  base::Status Replace(const std::vector<std::string>& lines);

  /// Bytes of all lines.
  uint64_t size() const { return size_; }

 private:
  Journal(base::UniqueFd fd, base::Path path, uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}
  base::UniqueFd fd_;
  base::Path path_;
  uint64_t size_ = 0;  // bytes of whole lines
};

struct Journal::Opened {
  Journal journal;
  std::vector<std::string> lines;  ///< the JSON of each, oldest first
};

}  // namespace fl::aggregator
