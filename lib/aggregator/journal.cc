#include "aggregator/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/digest.h"
#include "base/failpoint.h"

namespace fl::aggregator {
namespace {

constexpr size_t kChecksumDigits = 16;

std::string Checksum(std::string_view json) {
  return base::Digest::Of(json).Hex().substr(0, kChecksumDigits);
}

bool Valid(std::string_view line) {
  return line.size() > kChecksumDigits + 1 && line[kChecksumDigits] == ' ' &&
         line.substr(0, kChecksumDigits) == Checksum(line.substr(kChecksumDigits + 1));
}

}  // namespace

base::Result<Journal::Opened> Journal::Open(const base::Path& path) {
  FL_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path(), 0700));
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd.valid()) return base::FromErrno(errno, "open " + path.string());
  FL_RETURN_IF_ERROR(base::SyncDirectory(path.parent_path()));
  FL_ASSIGN_OR_RETURN(const std::string content, base::ReadFile(path));
  std::vector<std::string> lines;
  size_t whole = 0;
  while (whole < content.size()) {
    const size_t end = content.find('\n', whole);
    if (end == std::string::npos) break;  // a crash while it was written
    const std::string_view line = std::string_view(content).substr(whole, end - whole);
    if (!Valid(line)) {
      // Blocks of the last append may reach the disk out of order in a power cut.
      if (content.find('\n', end + 1) == std::string::npos) break;
      return base::DataLoss(
          path.string() + ": line " + std::to_string(lines.size() + 1) + " is damaged",
          "restore the file from a backup, or move the state folder away");
    }
    lines.emplace_back(line.substr(kChecksumDigits + 1));
    whole = end + 1;
  }
  if (whole < content.size() && ::ftruncate(fd.get(), static_cast<off_t>(whole)) != 0) {
    return base::FromErrno(errno, "truncate " + path.string());
  }
  return Opened{Journal(std::move(fd), path, whole), std::move(lines)};
}

base::Status Journal::Append(std::string_view json, bool sync) {
  FL_RETURN_IF_ERROR(base::Failpoint("journal.append"));
  std::string line = Checksum(json);
  line += ' ';
  line += json;
  line += '\n';
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = ::write(fd_.get(), line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error_number = errno;
      if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) {
        return base::DataLoss("cannot undo a partial write to " + path_.string());
      }
      return base::FromErrno(error_number, "write " + path_.string());
    }
    written += static_cast<size_t>(count);
  }
  size_ += line.size();
  if (sync && ::fdatasync(fd_.get()) != 0) {
    return base::FromErrno(errno, "sync " + path_.string());
  }
  return base::OkStatus();
}

}  // namespace fl::aggregator
