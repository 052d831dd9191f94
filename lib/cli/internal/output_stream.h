#pragma once

/// A std::ostream on a file descriptor that knows why a write failed.

#include <array>
#include <streambuf>

namespace fl::cli::internal {

/// Buffers; writes all or notes the error. A line's end is not a flush. One thread.
class OutputBuffer final : public std::streambuf {
 public:
  explicit OutputBuffer(int fd) : fd_(fd) { setp(buffer_.data(), buffer_.data() + buffer_.size()); }
  ~OutputBuffer() override { sync(); }
  /// errno of the first write that failed, or 0.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  int fd_;
  int error_ = 0;
  std::array<char, 8192> buffer_;
};

}  // namespace fl::cli::internal
