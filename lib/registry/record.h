#pragma once

/// The records of a model: what happened to it, in order, append-only. A record is one line of
/// JSON; it holds the SHA-256 of the line before, so that none can be changed, left out or moved
/// without being noticed. README.md of this module has the format.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/digest.h"
#include "base/status.h"

namespace fl::registry {

/// The types of records. Readers skip types they do not know.
inline constexpr std::string_view kRecordPublished = "published";
inline constexpr std::string_view kRecordImported = "imported";
inline constexpr std::string_view kRecordPromoted = "promoted";
inline constexpr std::string_view kRecordPinned = "pinned";
inline constexpr std::string_view kRecordUnpinned = "unpinned";
inline constexpr std::string_view kRecordPruned = "pruned";
inline constexpr std::string_view kRecordJobFinished = "job-finished";

struct Record {
  int64_t sequence = 0;   ///< dense from 0
  base::Digest previous;  ///< hash of the line before; all zeros in the first
  base::Time time;
  std::string type;
  std::string data;   ///< a JSON object, on one line
  base::Digest hash;  ///< of this record's own line, without its newline
};

/// The line (without newline) of a record; fills in nothing.
std::string FormatRecord(const Record& record);
/// Reads a line and computes its hash. kDataLoss.
base::Result<Record> ParseRecord(std::string_view line);

}  // namespace fl::registry
