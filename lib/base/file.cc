#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <vector>

#include "base/encoding.h"
#include "base/failpoint.h"
#include "base/random.h"

namespace fl::base {
namespace {

Status Errno(std::string_view what, const Path& path) {
  const int error_number = errno;
  return FromErrno(error_number, std::string(what) + " " + path.string());
}

Path Parent(const Path& path) { return path.has_parent_path() ? path.parent_path() : Path("."); }

Status WriteAllAt(int fd, uint64_t offset, std::span<const uint8_t> bytes, const Path& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0) {
      if (errno == EINTR) continue;
      return Errno("write", path);
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return OkStatus();
}

}  // namespace

void UniqueFd::Reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<std::string> ReadFile(const Path& path, uint64_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Errno("open", path);
  std::string content;
  std::vector<char> buffer(64 * 1024);
  while (true) {
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return Errno("read", path);
    }
    if (count == 0) return content;
    content.append(buffer.data(), static_cast<size_t>(count));
    if (content.size() > limit) {
      return OutOfRange("read " + path.string() + ": larger than " + std::to_string(limit) +
                        " bytes");
    }
  }
}

Status WriteFileAtomically(const Path& path, std::string_view content, int mode) {
  FL_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path, {}, mode));
  FL_RETURN_IF_ERROR(writer.Write(AsBytes(content)));
  return std::move(writer).Commit();
}

Status MakeDirectories(const Path& path, int mode) {
  if (path.empty()) return OkStatus();
  if (::mkdir(path.c_str(), static_cast<mode_t>(mode)) == 0) return OkStatus();
  if (errno == ENOENT) {
    FL_RETURN_IF_ERROR(MakeDirectories(path.parent_path(), mode));
    if (::mkdir(path.c_str(), static_cast<mode_t>(mode)) == 0) return OkStatus();
  }
  const int error_number = errno;
  std::error_code ignored;
  if (error_number == EEXIST && std::filesystem::is_directory(path, ignored)) return OkStatus();
  return FromErrno(error_number, "mkdir " + path.string());
}

Status SyncDirectory(const Path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Errno("open", path);
  if (::fsync(fd.get()) != 0) return Errno("fsync", path);
  return OkStatus();
}

Status RemoveFile(const Path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return Errno("remove", path);
  return OkStatus();
}

Status RemoveTree(const Path& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return FromErrno(error.value(), "remove " + path.string());
  return OkStatus();
}

Result<uint64_t> FreeSpace(const Path& path) {
  Path at = path.empty() ? Path(".") : path;
  struct statvfs info;
  while (::statvfs(at.c_str(), &info) != 0) {
    if (errno != ENOENT) return Errno("statvfs", at);
    const Path up = Parent(at);
    if (up == at) return Errno("statvfs", at);
    at = up;
  }
  return uint64_t{info.f_bavail} * info.f_frsize;
}

Result<FileWriter> FileWriter::Create(const Path& path, std::optional<uint64_t> expected_size,
                                      int mode) {
  FileWriter writer;
  writer.path_ = path;
  // A random name, since one made of the process id meets what a killed process left in a
  // container, where ids start again.
  std::array<uint8_t, 8> name{};
  RandomSource::Secure().Fill(name);
  writer.temporary_ = path.string() + "." + HexEncode(name) + ".tmp";
  writer.fd_ = UniqueFd(::open(writer.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                               static_cast<mode_t>(mode)));
  if (!writer.fd_.valid()) {
    const Status status = Errno("create", path);
    writer.temporary_.clear();
    return status;
  }
  if (expected_size && *expected_size > 0) {
    const bool too_large = *expected_size > uint64_t{std::numeric_limits<off_t>::max()};
    const int error =
        too_large ? EFBIG
                  : ::posix_fallocate(writer.fd_.get(), 0, static_cast<off_t>(*expected_size));
    // Other errors only mean that this file system cannot reserve.
    if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
      return FromErrno(error,
                       "reserve " + std::to_string(*expected_size) + " bytes for " + path.string());
    }
  }
  return writer;
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, Path())),
      written_(std::exchange(other.written_, 0)) {}

FileWriter& FileWriter::operator=(FileWriter&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(written_, other.written_);
  return *this;
}

FileWriter::~FileWriter() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status FileWriter::Write(std::span<const uint8_t> bytes) { return WriteAt(written_, bytes); }

Status FileWriter::WriteAt(uint64_t offset, std::span<const uint8_t> bytes) {
  FL_RETURN_IF_ERROR(Failpoint("file.write"));
  FL_RETURN_IF_ERROR(WriteAllAt(fd_.get(), offset, bytes, path_));
  written_ = std::max(written_, offset + bytes.size());
  return OkStatus();
}

Status FileWriter::Commit(bool durable, const std::optional<Path>& to) && {
  const Path target = to.value_or(path_);
  // What was reserved and not written goes again.
  if (::ftruncate(fd_.get(), static_cast<off_t>(written_)) != 0) return Errno("truncate", path_);
  if (durable && ::fsync(fd_.get()) != 0) return Errno("fsync", path_);
  FL_RETURN_IF_ERROR(Failpoint("file.rename"));
  if (::rename(temporary_.c_str(), target.c_str()) != 0) return Errno("rename to", target);
  temporary_.clear();
  fd_.Reset();
  return durable ? SyncDirectory(Parent(target)) : OkStatus();
}

Result<MappedFile> MappedFile::Open(const Path& path) {
  // Without O_NONBLOCK, a pipe by that name would wait for its writer instead of being refused.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return Errno("open", path);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return Errno("stat", path);
  if (!S_ISREG(info.st_mode)) return InvalidArgument(path.string() + " is not a regular file");
  MappedFile file;
  file.size_ = static_cast<size_t>(info.st_size);
  if (file.size_ == 0) return file;
  void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) {
    file.size_ = 0;
    return Errno("map", path);
  }
  file.data_ = static_cast<const uint8_t*>(data);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}
MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<uint8_t*>(data_), size_);
}

Result<FileLock> FileLock::Acquire(const Path& path, std::string_view owner) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return Errno("open", path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Errno("lock", path);
    std::array<char, 256> holder{};
    const ssize_t count = ::pread(fd.get(), holder.data(), holder.size(), 0);
    // A holder that has just taken the lock has not written its name yet.
    const std::string name = count > 0 ? std::string(holder.data(), static_cast<size_t>(count))
                                       : std::string("another process");
    return FailedPrecondition(path.string() + " is held by " + name,
                              "stop that process, or wait until it ends");
  }
  if (::ftruncate(fd.get(), 0) != 0) return Errno("truncate", path);
  FL_RETURN_IF_ERROR(WriteAllAt(fd.get(), 0, AsBytes(owner), path));
  return FileLock(std::move(fd));
}

}  // namespace fl::base
