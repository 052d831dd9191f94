#include <array>
#include <utility>

#include "transport/internal/socket_stream.h"

namespace fl::transport::internal {
namespace {

class PlainStream final : public SocketStream {
 public:
  using SocketStream::SocketStream;

  asio::awaitable<base::Status> Handshake() override { co_return base::OkStatus(); }

  asio::awaitable<base::Result<size_t>> Read(std::span<uint8_t> out) override {
    if (has_peeked_ && !out.empty()) {
      has_peeked_ = false;
      out[0] = peeked_;
      co_return size_t{1};
    }
    co_return co_await ReadSocket(out);
  }

  asio::awaitable<base::Status> Write(std::span<const uint8_t> bytes,
                                      const std::function<void(size_t)>& on_progress) override {
    co_return co_await WriteSocket(bytes, on_progress);
  }

  asio::awaitable<void> CloseGently(uint64_t limit) override { co_await DrainSocket(limit); }

  Peer Peek() override {
    if (has_peeked_) return Peer::kSentMore;
    const std::optional<size_t> n = TryReadSocket({&peeked_, 1});
    if (!n) return Peer::kSilent;
    if (*n == 0) return Peer::kGone;
    has_peeked_ = true;
    return Peer::kSentMore;
  }

  void SetBulkBuffer(size_t) override {}

 private:
  uint8_t peeked_ = 0;
  bool has_peeked_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> MakePlainStream(Socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

}  // namespace fl::transport::internal
