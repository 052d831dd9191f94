/// TLS over a socket with buffers of our own between OpenSSL and the kernel. Asio's ssl::stream,
/// and OpenSSL's socket BIO, make a system call or two for each record of 16 KiB; here one call
/// moves as many records as the buffer holds.

#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "transport/internal/socket_stream.h"
#include "transport/internal/tls_context.h"

namespace fl::transport::internal {
namespace {

constexpr size_t kSmallBuffer = 17 * 1024;  // one record and its overhead

/// Ciphertext between OpenSSL and the socket.
struct Ciphertext {
  std::vector<uint8_t> in;  ///< from the peer: [in_begin, in_end)
  size_t in_begin = 0;
  size_t in_end = 0;
  bool in_closed = false;
  std::vector<uint8_t> out;  ///< to the peer
};

int ReadBio(BIO* bio, char* data, size_t size, size_t* read) {
  auto& buffers = *static_cast<Ciphertext*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const size_t n = std::min(size, buffers.in_end - buffers.in_begin);
  *read = n;
  if (n == 0) {
    if (!buffers.in_closed) BIO_set_retry_read(bio);
    return 0;
  }
  std::memcpy(data, buffers.in.data() + buffers.in_begin, n);
  buffers.in_begin += n;
  if (buffers.in_begin == buffers.in_end) buffers.in_begin = buffers.in_end = 0;
  return 1;
}

int WriteBio(BIO* bio, const char* data, size_t size, size_t* written) {
  auto& buffers = *static_cast<Ciphertext*>(BIO_get_data(bio));
  buffers.out.insert(buffers.out.end(), data, data + size);
  *written = size;
  return 1;
}

long ControlBio(BIO* bio, int command, long, void*) {
  const auto& buffers = *static_cast<Ciphertext*>(BIO_get_data(bio));
  switch (command) {
    case BIO_CTRL_FLUSH:
      return 1;
    case BIO_CTRL_EOF:
      return buffers.in_closed && buffers.in_begin == buffers.in_end ? 1 : 0;
    case BIO_CTRL_PENDING:
      return static_cast<long>(buffers.in_end - buffers.in_begin);
    default:
      return 0;
  }
}

const BIO_METHOD* CiphertextMethod() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ciphertext");
    BIO_meth_set_read_ex(made, ReadBio);
    BIO_meth_set_write_ex(made, WriteBio);
    BIO_meth_set_ctrl(made, ControlBio);
    return made;
  }();
  return method;
}

class TlsStream final : public SocketStream {
 public:
  TlsStream(Socket socket, SSL_CTX* context)
      : SocketStream(std::move(socket)), ssl_(SSL_new(context)) {
    buffers_.in.resize(kSmallBuffer);
    BIO* const bio = BIO_new(CiphertextMethod());
    BIO_set_data(bio, &buffers_);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE);
    SSL_set_accept_state(ssl_.get());
  }

  asio::awaitable<base::Status> Handshake() override {
    for (;;) {
      ERR_clear_error();
      const int result = SSL_do_handshake(ssl_.get());
      const int error = SSL_get_error(ssl_.get(), result);
      const bool plain_http = result != 1 && error == SSL_ERROR_SSL &&
                              ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
      const std::string reason = TakeError();
      if (plain_http) {
        buffers_.out.clear();
        const base::Status told = co_await TellPlainClient();
        co_return told.ok() ? base::InvalidArgument("plain HTTP on a TLS port") : told;
      }
      // The flight to the peer, or the alert that says why not.
      const base::Status flushed = co_await Flush(nullptr);
      if (!flushed.ok()) co_return flushed;
      if (result == 1) break;
      if (error != SSL_ERROR_WANT_READ) {
        co_return base::PermissionDenied("TLS handshake failed: " + reason);
      }
      const base::Status filled = co_await Fill();
      if (!filled.ok()) co_return filled;
      if (buffers_.in_closed) co_return base::Unavailable("the peer left during the TLS handshake");
    }
    tls_exporter_ = ExportKeyingMaterial(ssl_.get());
    if (tls_exporter_.empty()) co_return base::Internal("the TLS exporter failed");
    const X509Ptr certificate(SSL_get1_peer_certificate(ssl_.get()));
    if (certificate != nullptr && SSL_get_verify_result(ssl_.get()) == X509_V_OK) {
      std::string name = SubjectName(*certificate);
      if (!name.empty()) client_certificate_name_ = std::move(name);
    }
    co_return base::OkStatus();
  }

  asio::awaitable<base::Result<size_t>> Read(std::span<uint8_t> out) override {
    for (;;) {
      size_t total = 0;
      // As much as is there without waiting: decrypt what the buffer holds, then ask the kernel.
      while (total < out.size()) {
        const Decrypted step = Decrypt(out.subspan(total));
        total += step.bytes;
        if (step.bytes > 0) continue;
        if (total > 0 && (step.ended || !step.status.ok())) break;  // told by the next call
        if (!step.status.ok()) co_return step.status;
        if (step.ended) co_return size_t{0};
        if (!TryFill()) break;
      }
      if (!buffers_.out.empty()) {  // an answer of TLS itself, e.g. to a key update
        const base::Status flushed = co_await Flush(nullptr);
        if (!flushed.ok()) co_return flushed;
      }
      if (total > 0 || out.empty()) co_return total;
      const base::Status filled = co_await Fill();
      if (!filled.ok()) co_return filled;
    }
  }

  asio::awaitable<base::Status> Write(std::span<const uint8_t> bytes,
                                      const std::function<void(size_t)>& on_progress) override {
    const size_t piece = std::max<size_t>(bulk_, 16384);
    while (!bytes.empty()) {
      ERR_clear_error();
      size_t written = 0;
      if (SSL_write_ex(ssl_.get(), bytes.data(), std::min(bytes.size(), piece), &written) != 1) {
        co_return base::Unavailable("TLS write failed: " + TakeError());
      }
      bytes = bytes.subspan(written);
      if (bytes.empty() || buffers_.out.size() >= piece) {
        const base::Status flushed = co_await Flush(on_progress);
        if (!flushed.ok()) co_return flushed;
      }
    }
    co_return base::OkStatus();
  }

  asio::awaitable<void> CloseGently(uint64_t limit) override {
    ERR_clear_error();
    if (SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
    TakeError();
    const base::Status flushed = co_await Flush(nullptr);
    if (flushed.ok()) co_await DrainSocket(limit);
  }

  Peer Peek() override {
    TryFill();
    ERR_clear_error();
    uint8_t byte = 0;
    size_t n = 0;
    if (SSL_peek_ex(ssl_.get(), &byte, 1, &n) == 1) return Peer::kSentMore;
    const int error = SSL_get_error(ssl_.get(), 0);
    TakeError();
    return error == SSL_ERROR_WANT_READ ? Peer::kSilent : Peer::kGone;
  }

  void SetBulkBuffer(size_t bytes) override {
    bulk_ = bytes;
    const size_t wanted = std::max(bytes, kSmallBuffer);
    const size_t held = buffers_.in_end - buffers_.in_begin;
    if (wanted != buffers_.in.size() && held <= wanted) {
      std::vector<uint8_t> resized(wanted);
      std::copy_n(buffers_.in.begin() + static_cast<ptrdiff_t>(buffers_.in_begin), held,
                  resized.begin());
      buffers_.in.swap(resized);
      buffers_.in_begin = 0;
      buffers_.in_end = held;
    }
    if (bytes == 0 && buffers_.out.empty()) std::vector<uint8_t>().swap(buffers_.out);
  }

 private:
  struct Decrypted {
    size_t bytes = 0;
    bool ended = false;
    base::Status status;
  };

  Decrypted Decrypt(std::span<uint8_t> out) {
    ERR_clear_error();
    Decrypted step;
    if (SSL_read_ex(ssl_.get(), out.data(), out.size(), &step.bytes) == 1) return step;
    step.bytes = 0;
    const int error = SSL_get_error(ssl_.get(), 0);
    const std::string reason = TakeError();
    if (error == SSL_ERROR_ZERO_RETURN) {
      step.ended = true;
    } else if (error != SSL_ERROR_WANT_READ) {
      // The end without a close alert may be an attacker's: an error, never a normal end.
      step.status = base::Unavailable(buffers_.in_closed ? "the peer went without closing TLS"
                                                         : "TLS read failed: " + reason);
    }
    return step;
  }

  /// Room at the end of the input buffer, where it is not full.
  std::span<uint8_t> Room() {
    if (buffers_.in_begin > 0) {
      std::memmove(buffers_.in.data(), buffers_.in.data() + buffers_.in_begin,
                   buffers_.in_end - buffers_.in_begin);
      buffers_.in_end -= buffers_.in_begin;
      buffers_.in_begin = 0;
    }
    return std::span(buffers_.in).subspan(buffers_.in_end);
  }

  /// What the kernel has, without waiting; false where that is nothing.
  bool TryFill() {
    if (buffers_.in_closed) return false;
    const std::span<uint8_t> room = Room();
    if (room.empty()) return false;
    const std::optional<size_t> n = TryReadSocket(room);
    if (!n) return false;
    buffers_.in_end += *n;
    buffers_.in_closed = *n == 0;
    return true;
  }

  asio::awaitable<base::Status> Fill() {
    if (buffers_.in_closed) co_return base::OkStatus();
    const base::Result<size_t> n = co_await ReadSocket(Room());
    if (!n.ok()) co_return n.status();
    buffers_.in_end += *n;
    buffers_.in_closed = *n == 0;
    co_return base::OkStatus();
  }

  asio::awaitable<base::Status> Flush(const std::function<void(size_t)>& on_progress) {
    const base::Status written = co_await WriteSocket(buffers_.out, on_progress);
    buffers_.out.clear();
    co_return written;
  }

  asio::awaitable<base::Status> TellPlainClient() {
    const std::string body =
        std::get<std::string>(ErrorResponse(base::InvalidArgument("plain HTTP on a TLS port",
                                                                  "use https:// in the address"))
                                  .body);
    const std::string answer =
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n"
        "Content-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    co_return co_await WriteSocket(base::AsBytes(answer), nullptr);
  }

  Ciphertext buffers_;
  SslPtr ssl_;
  size_t bulk_ = 0;
};

}  // namespace

std::unique_ptr<ByteStream> MakeTlsStream(Socket socket, SSL_CTX* context) {
  return std::make_unique<TlsStream>(std::move(socket), context);
}

}  // namespace fl::transport::internal
