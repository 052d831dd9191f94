#include "transport/internal/socket_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

namespace fl::transport::internal {
namespace {

using boost::system::error_code;

base::Status FromAsio(const error_code& error, std::string_view what) {
  if (error == asio::error::operation_aborted) {
    return base::Cancelled(std::string(what) + " was interrupted");
  }
  return base::Unavailable(std::string(what) + ": " + error.message());
}

}  // namespace

SocketStream::SocketStream(Socket socket) : socket_(std::move(socket)) {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  // Peek and the fill loop of TLS read without waiting; Asio's own operations cope with it.
  socket_.non_blocking(true, ignored);
}

void SocketStream::Watch(std::function<void()> on_readable) {
  socket_.async_wait(Socket::wait_read,
                     [on_readable = std::move(on_readable)](const error_code& error) {
                       if (error != asio::error::operation_aborted) on_readable();
                     });
}

void SocketStream::StopWatching() { Cancel(); }

void SocketStream::Cancel() {
  error_code ignored;
  socket_.cancel(ignored);
}

void SocketStream::Close() {
  error_code ignored;
  socket_.close(ignored);
}

asio::awaitable<base::Result<size_t>> SocketStream::ReadSocket(std::span<uint8_t> out) {
  error_code error;
  const size_t n = co_await socket_.async_read_some(
      asio::buffer(out.data(), out.size()), asio::redirect_error(asio::use_awaitable, error));
  if (error == asio::error::eof) co_return size_t{0};
  if (error) co_return FromAsio(error, "read from the peer");
  co_return n;
}

asio::awaitable<base::Status> SocketStream::WriteSocket(
    std::span<const uint8_t> bytes, const std::function<void(size_t)>& on_progress) {
  while (!bytes.empty()) {
    error_code error;
    const size_t n = co_await socket_.async_write_some(
        asio::buffer(bytes.data(), bytes.size()), asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return FromAsio(error, "write to the peer");
    bytes = bytes.subspan(n);
    if (on_progress) on_progress(n);
  }
  co_return base::OkStatus();
}

std::optional<size_t> SocketStream::TryReadSocket(std::span<uint8_t> out) {
  const ssize_t n = ::recv(socket_.native_handle(), out.data(), out.size(), MSG_DONTWAIT);
  if (n >= 0) return static_cast<size_t>(n);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return std::nullopt;
  return 0;
}

asio::awaitable<void> SocketStream::DrainSocket(uint64_t limit) {
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  std::array<uint8_t, 16384> dropped;
  while (limit > 0) {
    const base::Result<size_t> n = co_await ReadSocket(dropped);
    if (!n.ok() || *n == 0) break;
    limit -= std::min<uint64_t>(limit, *n);
  }
}

}  // namespace fl::transport::internal
