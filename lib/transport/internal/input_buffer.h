#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace fl::transport::internal {

/// Bytes that came and are not used yet, in one piece.
class InputBuffer {
 public:
  explicit InputBuffer(size_t capacity) : bytes_(capacity) {}

  std::span<const uint8_t> bytes() const { return std::span(bytes_).subspan(begin_, size()); }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return size() == 0; }
  bool full() const { return size() == bytes_.size(); }

  void Consume(size_t n) {
    begin_ += n;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  /// Where the next bytes go; empty where the buffer is full. Moves what is held to the front.
  std::span<uint8_t> Room() {
    if (begin_ > 0) {
      std::memmove(bytes_.data(), bytes_.data() + begin_, size());
      end_ -= begin_;
      begin_ = 0;
    }
    return std::span(bytes_).subspan(end_);
  }
  void Added(size_t n) { end_ += n; }
  /// As close to `capacity` as what is held allows.
  void SetCapacity(size_t capacity) {
    Room();
    capacity = std::max(capacity, size());
    if (capacity == bytes_.size()) return;
    std::vector<uint8_t> resized(capacity);
    std::copy_n(bytes_.begin(), size(), resized.begin());
    bytes_.swap(resized);
  }
  size_t capacity() const { return bytes_.size(); }

 private:
  std::vector<uint8_t> bytes_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace fl::transport::internal
