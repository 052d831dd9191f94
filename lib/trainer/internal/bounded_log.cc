#include "trainer/internal/bounded_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <thread>
#include <vector>

namespace fl::trainer::internal {
namespace {

using base::Result;
using base::UniqueFd;

class FileLog final : public BoundedLog {
 public:
  FileLog(base::Path path, uint64_t limit, UniqueFd wake)
      : path_(std::move(path)), limit_(limit / 2), wake_(std::move(wake)) {
    OpenFile();
    copier_ = std::jthread([this](const std::stop_token& stop) { Copy(stop); });
  }
  ~FileLog() override {
    copier_.request_stop();
    Wake();
  }

  void Write(std::string_view line) override { Append(std::string(line) + "\n"); }

  Result<UniqueFd> OpenPipe() override {
    std::array<int, 2> fds;
    if (::pipe2(fds.data(), O_CLOEXEC) != 0) return base::FromErrno(errno, "make a pipe");
    // Ours only: what is left after the program's end is read without waiting.
    ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
    const std::lock_guard lock(mutex_);
    new_pipes_.emplace_back(fds[0]);
    Wake();
    return UniqueFd(fds[1]);
  }

 private:
  void Wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t count = ::write(wake_.get(), &one, sizeof(one));
  }

  void OpenFile() {
    file_ = UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    size_ = 0;
    if (!file_.valid()) return;
    const off_t end = ::lseek(file_.get(), 0, SEEK_END);
    if (end > 0) size_ = static_cast<uint64_t>(end);
  }

  void Append(std::string_view text) {
    const std::lock_guard lock(mutex_);
    while (!text.empty()) {
      if (size_ >= limit_) {
        ::rename(path_.c_str(), (path_.string() + ".1").c_str());
        OpenFile();
        if (size_ >= limit_) return;  // it could not be renamed
      }
      const size_t part = static_cast<size_t>(std::min<uint64_t>(text.size(), limit_ - size_));
      const ssize_t count = ::write(file_.get(), text.data(), part);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return;
      size_ += static_cast<uint64_t>(count);
      text.remove_prefix(static_cast<size_t>(count));
    }
  }

  /// Copies what `pipe` has now. False when its last writer is gone.
  bool Drain(int pipe) {
    std::array<char, 16384> chunk;
    while (true) {
      const ssize_t count = ::read(pipe, chunk.data(), chunk.size());
      if (count > 0) {
        Append({chunk.data(), static_cast<size_t>(count)});
        if (count < static_cast<ssize_t>(chunk.size())) return true;
        continue;
      }
      if (count < 0 && errno == EINTR) continue;
      return count < 0 && errno == EAGAIN;
    }
  }

  void Copy(const std::stop_token& stop) {
    std::vector<UniqueFd> pipes;
    while (true) {
      const bool last = stop.stop_requested();
      {
        const std::lock_guard lock(mutex_);
        for (UniqueFd& pipe : new_pipes_) pipes.push_back(std::move(pipe));
        new_pipes_.clear();
      }
      std::erase_if(pipes, [this](const UniqueFd& pipe) { return !Drain(pipe.get()); });
      if (last) return;
      std::vector<struct pollfd> waits = {{wake_.get(), POLLIN, 0}};
      for (const UniqueFd& pipe : pipes) waits.push_back({pipe.get(), POLLIN, 0});
      ::poll(waits.data(), waits.size(), -1);
      uint64_t ignored;
      [[maybe_unused]] const ssize_t count = ::read(wake_.get(), &ignored, sizeof(ignored));
    }
  }

  const base::Path path_;
  const uint64_t limit_;
  const UniqueFd wake_;
  std::mutex mutex_;  // guards all below
  UniqueFd file_;
  uint64_t size_ = 0;
  std::vector<UniqueFd> new_pipes_;
  std::jthread copier_;  // last: it uses the others
};

}  // namespace

Result<std::unique_ptr<BoundedLog>> BoundedLog::Open(const base::Path& path, uint64_t limit) {
  if (path.has_parent_path()) FL_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path()));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return base::FromErrno(errno, "make an eventfd");
  return std::unique_ptr<BoundedLog>(std::make_unique<FileLog>(path, limit, std::move(wake)));
}

}  // namespace fl::trainer::internal
