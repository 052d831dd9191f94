#include "aggregator/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

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

std::string Line(std::string_view json) {
  std::string line = Checksum(json);
  line += ' ';
  line += json;
  line += '\n';
  return line;
}

/// What Replace left when it was killed.
void RemoveUnfinished(const base::Path& path) {
  const std::string prefix = path.filename().string() + ".";
  std::vector<base::Path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(path.parent_path(), error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".tmp")) found.push_back(it->path());
  }
  for (const base::Path& each : found) std::filesystem::remove(each, error);
}

}  // namespace

base::Result<Journal::Opened> Journal::Open(const base::Path& path) {
  FL_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path(), 0700));
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd.valid()) return base::FromErrno(errno, "open " + path.string());
  FL_RETURN_IF_ERROR(base::SyncDirectory(path.parent_path()));
  RemoveUnfinished(path);
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
  const std::string line = Line(json);
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

base::Status Journal::Replace(const std::vector<std::string>& lines) {
  FL_RETURN_IF_ERROR(base::Failpoint("journal.replace"));
  std::string content;
  for (const std::string& json : lines) content += Line(json);
  const base::Status replaced = base::WriteFileAtomically(path_, content, 0600);
  // Whichever file has the name now takes what follows. Without one, nothing may be appended.
  fd_.Reset(::open(path_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  if (!fd_.valid()) return base::FromErrno(errno, "open " + path_.string());
  struct stat info{};
  if (::fstat(fd_.get(), &info) != 0) return base::FromErrno(errno, "stat " + path_.string());
  size_ = static_cast<uint64_t>(info.st_size);
  return replaced;
}

}  // namespace fl::aggregator
