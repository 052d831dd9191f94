#include "agent/internal/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <vector>

namespace fl::agent::internal {
namespace {

using base::Result;
using base::Status;

constexpr size_t kReadBytes = size_t{1} << 20;

Result<uint64_t> TakeNumber(std::string_view& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return base::DataLoss("not a number");
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

Result<uint64_t> FirstByteOfRange(std::string_view content_range, uint64_t size) {
  const Status malformed =
      base::DataLoss("the aggregator answered with Content-Range \"" + std::string(content_range) +
                     "\" for a blob of " + std::to_string(size) + " bytes");
  std::string_view rest = content_range;
  if (!TakePrefix(rest, "bytes ")) return malformed;
  const Result<uint64_t> first = TakeNumber(rest);
  if (!first.ok() || !TakePrefix(rest, "-")) return malformed;
  const Result<uint64_t> last = TakeNumber(rest);
  if (!last.ok() || !TakePrefix(rest, "/")) return malformed;
  const Result<uint64_t> total = TakeNumber(rest);
  if (!total.ok() || !rest.empty() || *total != size || *first > *last || *last >= size) {
    return malformed;
  }
  return *first;
}

Result<PartFile> PartFile::Open(const base::Path& path, uint64_t size) {
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return base::FromErrno(errno, "open " + path.string());
  PartFile part(std::move(fd), path, size);
  FL_RETURN_IF_ERROR(part.HashWhatIsThere());
  FL_ASSIGN_OR_RETURN(const uint64_t free, base::FreeSpace(path.parent_path()));
  const uint64_t missing = size - part.received_;
  if (missing > free) {
    return base::ResourceExhausted("the model needs " + std::to_string(missing) +
                                       " more bytes in " + path.parent_path().string() +
                                       ", where " + std::to_string(free) + " are free",
                                   "make room, or put workDir on a larger disk");
  }
  return part;
}

Status PartFile::HashWhatIsThere() {
  std::vector<uint8_t> buffer(kReadBytes);
  for (;;) {
    const ssize_t count =
        ::pread(fd_.get(), buffer.data(), buffer.size(), static_cast<off_t>(received_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::FromErrno(errno, "read " + path_.string());
    if (count == 0) return base::OkStatus();
    const auto bytes = static_cast<size_t>(count);
    if (bytes > size_ - received_) return StartOver();  // longer than the blob: not its beginning
    hash_.Update({buffer.data(), bytes});
    received_ += bytes;
  }
}

Status PartFile::StartOver() {
  if (::ftruncate(fd_.get(), 0) != 0) return base::FromErrno(errno, "truncate " + path_.string());
  received_ = 0;
  hash_ = base::Sha256();
  return base::OkStatus();
}

Status PartFile::Start(int http_status, const transport::Headers& headers) {
  if (http_status != 206) return received_ == 0 ? base::OkStatus() : StartOver();
  FL_ASSIGN_OR_RETURN(const uint64_t first,
                      FirstByteOfRange(headers.GetOr("Content-Range", ""), size_));
  if (first == received_) return base::OkStatus();
  return base::DataLoss("the aggregator sent the blob from byte " + std::to_string(first) +
                        ", asked for from " + std::to_string(received_));
}

Status PartFile::Write(std::span<const uint8_t> bytes) {
  if (bytes.size() > size_ - received_) {
    return base::DataLoss("the aggregator sent more than the " + std::to_string(size_) +
                          " bytes that it announced");
  }
  hash_.Update(bytes);
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(received_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::FromErrno(errno, "write " + path_.string());
    received_ += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return base::OkStatus();
}

}  // namespace fl::agent::internal
