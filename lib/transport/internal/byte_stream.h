#pragma once

/// One connection as bytes: plain TCP, TLS on TCP, or memory (the fuzzer's). HTTP runs on top
/// without knowing which.
///
/// All calls come on the connection's strand, one operation at a time; Cancel and Close may come
/// while one is pending.

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "transport/internal/openssl.h"

// Asio's coroutine frames have an operator new made of aligned_alloc; inlined, g++ 12 takes it for
// a mismatch with the operator delete beside it, in every coroutine.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace fl::transport::internal {

namespace asio = boost::asio;
using Socket = asio::ip::tcp::socket;

class ByteStream {
 public:
  virtual ~ByteStream() = default;

  virtual asio::awaitable<base::Status> Handshake() = 0;
  /// Fills the front of `out` with at least one byte; 0 is the end of the stream.
  virtual asio::awaitable<base::Result<size_t>> Read(std::span<uint8_t> out) = 0;
  /// Hands all of `bytes` to the kernel. `on_progress` (may be null) hears of each piece it took.
  virtual asio::awaitable<base::Status> Write(std::span<const uint8_t> bytes,
                                              const std::function<void(size_t)>& on_progress) = 0;
  /// Says that no more will be written, then reads and drops what still comes, at most `limit`
  /// bytes, so that the peer has time to read what was written last: closing with unread bytes
  /// would reset the connection and destroy it.
  virtual asio::awaitable<void> CloseGently(uint64_t limit) = 0;

  /// Calls `on_readable` once when something arrives or the peer goes; until StopWatching.
  virtual void Watch(std::function<void()> on_readable) = 0;
  virtual void StopWatching() = 0;
  enum class Peer { kSilent, kSentMore, kGone };
  /// What the last readiness meant, without waiting.
  virtual Peer Peek() = 0;

  /// Pending operations fail.
  virtual void Cancel() = 0;
  virtual void Close() = 0;
  /// Large bodies want large buffers: `bytes` while one is in flight, 0 to give them back.
  virtual void SetBulkBuffer(size_t bytes) = 0;

  virtual const std::string& tls_exporter() const = 0;
  virtual const std::optional<std::string>& client_certificate_name() const = 0;
};

std::unique_ptr<ByteStream> MakePlainStream(Socket socket);
/// `context` outlives the stream.
std::unique_ptr<ByteStream> MakeTlsStream(Socket socket, SSL_CTX* context);

}  // namespace fl::transport::internal
