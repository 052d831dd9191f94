#pragma once

#include "transport/internal/byte_stream.h"

namespace fl::transport::internal {

/// What plain and TLS streams share: the socket under them.
class SocketStream : public ByteStream {
 public:
  explicit SocketStream(Socket socket);

  void Watch(std::function<void()> on_readable) override;
  void StopWatching() override;
  void Cancel() override;
  void Close() override;
  const std::string& tls_exporter() const override { return tls_exporter_; }
  const std::optional<std::string>& client_certificate_name() const override {
    return client_certificate_name_;
  }

 protected:
  /// One read from the socket; 0 at its end.
  asio::awaitable<base::Result<size_t>> ReadSocket(std::span<uint8_t> out);
  asio::awaitable<base::Status> WriteSocket(std::span<const uint8_t> bytes,
                                            const std::function<void(size_t)>& on_progress);
  /// One read that does not wait: nullopt where nothing is there, 0 at the end or on an error.
  std::optional<size_t> TryReadSocket(std::span<uint8_t> out);
  asio::awaitable<void> DrainSocket(uint64_t limit);
  Socket& socket() { return socket_; }

  std::string tls_exporter_;
  std::optional<std::string> client_certificate_name_;

 private:
  Socket socket_;
};

}  // namespace fl::transport::internal
