#pragma once

/// Files: whole reads, durable replacement, mapping, locks. Paths in messages are as given.
/// Disk-full is kResourceExhausted and leaves the old file whole (a limit on file sizes is told the
/// same way where SIGXFSZ is ignored, as SignalStop does). Free functions are thread-safe.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace fl::base {

using Path = std::filesystem::path;

/// Owns a file descriptor; closes it.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { Reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// The whole file. kNotFound, kPermissionDenied, kOutOfRange where it is larger than `limit` bytes.
Result<std::string> ReadFile(const Path& path, uint64_t limit = uint64_t{1} << 30);

/// Replaces `path` by `content` so that a reader, also after a crash, sees the old or the new file
/// whole: temporary file beside it, fsync, rename, fsync of the folder. `mode` as for open(2).
Status WriteFileAtomically(const Path& path, std::string_view content, int mode = 0644);

/// mkdir -p.
Status MakeDirectories(const Path& path, int mode = 0755);
/// fsync of the folder, so that names in it survive a crash.
Status SyncDirectory(const Path& path);
/// Removes the file; one that is not there is fine.
Status RemoveFile(const Path& path);
/// Removes a folder and all in it; one that is not there is fine.
Status RemoveTree(const Path& path);
/// Bytes available to this user on the file system of `path` (the nearest folder that exists).
Result<uint64_t> FreeSpace(const Path& path);

/// A file that is being written, and hashed by its caller. Writes all or fails; not durable until
/// Commit. Dropped without Commit, it removes its temporary file.
class FileWriter {
 public:
  /// Opens a temporary file beside `path`. `expected_size` bytes, where known, are reserved up
  /// front where the file system can, so that a full disk is told before the first byte. Its name
  /// is that of `path`, 16 hex digits and ".tmp": what a killed process left is known by that.
  static Result<FileWriter> Create(const Path& path, std::optional<uint64_t> expected_size = {},
                                   int mode = 0644);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&& other) noexcept;
  ~FileWriter();

  /// At the end of what was written so far.
  Status Write(std::span<const uint8_t> bytes);
  /// At `offset`, for files whose parts are not made in order. What is never written reads as zero.
  Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes);
  /// The end of what was written.
  uint64_t written() const { return written_; }
  const Path& temporary_path() const { return temporary_; }
  /// fsync where `durable`, then rename to the path given to Create (or to `to`, on the same file
  /// system). After an error the old file may already be replaced, if only the fsync of the folder
  /// failed.
  Status Commit(bool durable = true, const std::optional<Path>& to = {}) &&;

 private:
  FileWriter() = default;
  UniqueFd fd_;
  Path path_;
  Path temporary_;
  uint64_t written_ = 0;
};

/// A whole file mapped for reading. Its pages are the kernel's, not anonymous memory of ours. The
/// file must not be cut short meanwhile (SIGBUS): ours are replaced, never rewritten in place.
class MappedFile {
 public:
  /// kNotFound, kPermissionDenied, kInvalidArgument where it is no regular file.
  static Result<MappedFile> Open(const Path& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  size_t size() const { return size_; }

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

/// A lock on a file, held while the object lives and given up by the kernel when the process dies.
class FileLock {
 public:
  /// Takes the lock or fails at once with kFailedPrecondition that names the holder (who wrote
  /// `owner` when taking it).
  static Result<FileLock> Acquire(const Path& path, std::string_view owner);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace fl::base
