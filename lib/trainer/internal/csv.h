#pragma once

/// Reading CSV (RFC 4180) in a stream: one record at a time, memory of the longest record.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace fl::trainer::internal {

/// Commas between fields; fields may be quoted, with "" for a quote and line ends inside; records
/// end in LF or CRLF; a UTF-8 byte order mark and empty lines are skipped. One thread.
class CsvReader {
 public:
  /// Longest record that is read.
  static constexpr size_t kMaxRecordBytes = size_t{64} << 20;

  static base::Result<CsvReader> Open(const base::Path& path);

  /// The next record; false at the end of the file. `fields` point into the reader and hold until
  /// the next call. kInvalidArgument names file and line.
  base::Result<bool> Next(std::vector<std::string_view>& fields);
  /// Line of the file, from 1, on which the last record began.
  int64_t line() const { return record_line_; }
  /// `message` with file and line of the last record before it.
  base::Status Error(const std::string& message, std::string hint = "") const;

 private:
  base::Status Fill();
  base::Result<bool> FindRecord(size_t& end);
  void SplitRecord(size_t end, std::vector<std::string_view>& fields);

  base::Path path_;
  base::UniqueFd fd_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of what was read and not yet given out
  size_t end_ = 0;
  bool end_of_file_ = false;
  int64_t next_line_ = 1;
  int64_t record_line_ = 0;
  bool record_has_quotes_ = false;
};

}  // namespace fl::trainer::internal
