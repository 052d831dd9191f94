#include "trainer/internal/csv.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fl::trainer::internal {

using base::Result;
using base::Status;

Result<CsvReader> CsvReader::Open(const base::Path& path) {
  CsvReader reader;
  reader.path_ = path;
  reader.fd_ = base::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!reader.fd_.valid()) return base::FromErrno(errno, "open dataset " + path.string());
  reader.buffer_.resize(size_t{256} << 10);
  FL_RETURN_IF_ERROR(reader.Fill());
  if (std::string_view(reader.buffer_.data(), reader.end_).starts_with("\xEF\xBB\xBF")) {
    reader.begin_ = 3;
  }
  return reader;
}

Status CsvReader::Error(const std::string& message, std::string hint) const {
  return base::InvalidArgument(
      path_.string() + " line " + std::to_string(record_line_) + ": " + message, std::move(hint));
}

Status CsvReader::Fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    if (buffer_.size() >= kMaxRecordBytes) {
      return Error("longer than " + std::to_string(kMaxRecordBytes) + " bytes",
                   "is a quote missing?");
    }
    buffer_.resize(buffer_.size() * 2);
  }
  while (true) {
    const ssize_t count = ::read(fd_.get(), buffer_.data() + end_, buffer_.size() - end_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::FromErrno(errno, "read dataset " + path_.string());
    if (count == 0) end_of_file_ = true;
    end_ += static_cast<size_t>(count);
    return base::OkStatus();
  }
}

/// Finds where the record at begin_ ends: `end` is the offset from begin_ of its LF, or of the end
/// of the file. False where nothing is left.
Result<bool> CsvReader::FindRecord(size_t& end) {
  bool quoted = false;
  record_has_quotes_ = false;
  record_line_ = next_line_;
  for (size_t at = 0;;) {
    const char* const data = buffer_.data() + begin_;
    const size_t available = end_ - begin_;
    const char* const newline =
        static_cast<const char*>(std::memchr(data + at, '\n', available - at));
    const size_t stop = newline == nullptr ? available : static_cast<size_t>(newline - data);
    for (const char* quote = data + at;
         (quote = static_cast<const char*>(
              std::memchr(quote, '"', static_cast<size_t>(data + stop - quote)))) != nullptr;
         ++quote) {
      quoted = !quoted;  // an escaped quote toggles twice
      record_has_quotes_ = true;
    }
    at = stop;
    if (newline != nullptr) {
      ++next_line_;
      if (!quoted) {
        end = stop;
        return true;
      }
      ++at;
      continue;
    }
    if (end_of_file_) {
      if (quoted) return Error("a quoted field does not end");
      end = available;
      return available > 0;
    }
    FL_RETURN_IF_ERROR(Fill());
  }
}

/// Splits the record of `end` bytes at begin_; unescapes quoted fields in place.
void CsvReader::SplitRecord(size_t end, std::vector<std::string_view>& fields) {
  char* const data = buffer_.data() + begin_;
  fields.clear();
  if (!record_has_quotes_) {
    const char* field = data;
    const char* const stop = data + end;
    while (true) {
      const char* const comma =
          static_cast<const char*>(std::memchr(field, ',', static_cast<size_t>(stop - field)));
      const char* const field_end = comma == nullptr ? stop : comma;
      fields.emplace_back(field, static_cast<size_t>(field_end - field));
      if (comma == nullptr) return;
      field = comma + 1;
    }
  }
  for (size_t at = 0; at <= end;) {
    const size_t start = at;
    size_t write = at;
    bool quoted = false;
    for (; at < end && (quoted || data[at] != ','); ++at) {
      if (data[at] == '"') {
        if (quoted && at + 1 < end && data[at + 1] == '"') {
          data[write++] = data[at++];
        } else {
          quoted = !quoted;
        }
      } else {
        data[write++] = data[at];
      }
    }
    fields.emplace_back(data + start, write - start);
    ++at;
  }
}

Result<bool> CsvReader::Next(std::vector<std::string_view>& fields) {
  while (true) {
    size_t end = 0;
    FL_ASSIGN_OR_RETURN(const bool found, FindRecord(end));
    if (!found) return false;
    const size_t next = begin_ + end + (begin_ + end < end_ ? 1 : 0);
    size_t length = end;
    if (length > 0 && buffer_[begin_ + length - 1] == '\r') --length;
    if (length > 0) {
      SplitRecord(length, fields);
      begin_ = next;
      return true;
    }
    begin_ = next;
  }
}

}  // namespace fl::trainer::internal
