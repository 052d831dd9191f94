#pragma once

/// An HTTP/1.1 server over TLS 1.3. It knows nothing of what it serves: a Handler decides about
/// each request when its head is in, before any of the body is taken (and before "100 Continue").
///
/// Threads. Sockets and TLS run on `io_threads`; every call into the Handler, its callbacks and
/// BodySinks runs on `handler_threads`, where it may block on a disk: other connections go on.
/// Calls for one request come one after the other; for different requests at the same time. An
/// exception that escapes from a handler becomes a 500 for that request.
///
/// What it refuses by itself, as JSON errors: requests that are not HTTP/1.1 or 1.0 or that leave
/// their length open to doubt (400), too many or too long header fields (431), heads and bodies
/// that come too slowly (408), expectations other than 100-continue (417), versions (505). A
/// refusal reaches a client that is still sending: the answer goes out, then a bounded amount of
/// what comes is read and dropped before the connection closes.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "base/clock.h"
#include "base/status.h"
#include "transport/http.h"
#include "transport/responder.h"

namespace fl::transport {

/// The label of the TLS exporter (RFC 8446 section 7.5) that binds a session to its connection; 32
/// bytes, no context.
inline constexpr std::string_view kTlsExporterLabel = "EXPORTER-fl-session";
inline constexpr size_t kTlsExporterBytes = 32;

/// What is known about a request when its head is in. Lives as long as the call it is given to.
struct RequestContext {
  const RequestHead& head;
  /// 32 bytes that only the two ends of this TLS connection know; "" without TLS.
  const std::string& tls_exporter;
  /// The name in the client's verified certificate (its common name, or without one its first DNS
  /// name), where it showed one.
  const std::optional<std::string>& client_certificate_name;
};

/// Takes a body as it comes. Destroyed without Finish: the request ended early (peer gone, timeout,
/// or a Write that failed), and nothing of it counts.
class BodySink {
 public:
  virtual ~BodySink() = default;
  /// The next bytes, in order. An error ends the request and is the answer.
  virtual base::Status Write(std::span<const uint8_t> bytes) = 0;
  /// The whole body came, with `trailers` (those of a chunked body; never Content-Length and the
  /// like). Called once, last.
  virtual void Finish(const Headers& trailers, Responder responder) = 0;
};

/// Takes a body whole, in memory. A longer one than `limit` bytes is answered 413.
struct Buffered {
  uint64_t limit = 0;
  std::function<void(std::string body, Responder responder)> then;
};

/// How a request goes on: refused now with a Response (no body is read, 100 Continue is not sent),
/// or with its body in memory, or streamed (never null).
using Accept = std::variant<Response, Buffered, std::unique_ptr<BodySink>>;

/// The seam between the server and what it serves. Thread-safe.
class Handler {
 public:
  virtual ~Handler() = default;
  virtual Accept OnRequest(const RequestContext& context) = 0;
};

/// Certificate and key of the server, PEM texts. TLS 1.3 only.
struct ServerTls {
  std::string certificate_pem;  ///< the server's own first, then intermediates
  std::string key_pem;
  /// Where set, clients may show a certificate, which must be signed by one of these.
  std::string client_ca_pem;
  bool require_client_certificate = false;
};

struct ServerLimits {
  int max_connections =
      4096;  ///< past it, the connection that idles longest goes, else the new one
  size_t max_header_bytes = 32 * 1024;
  size_t max_header_fields = 100;
  base::Duration handshake_timeout = std::chrono::seconds(10);
  base::Duration header_timeout = std::chrono::seconds(20);  ///< from first to last byte of a head
  base::Duration idle_timeout = std::chrono::seconds(75);    ///< between requests
  /// Bodies, both ways: the longest silence, and the slowest rate after `progress_grace`.
  base::Duration progress_timeout = std::chrono::seconds(60);
  base::Duration progress_grace = std::chrono::seconds(60);
  uint64_t min_bytes_per_second = 1024;
  /// After a refusal: how much and how long is read and dropped before closing.
  uint64_t drain_bytes = 16 << 20;
  base::Duration drain_timeout = std::chrono::seconds(5);
  /// Memory for bodies in flight, all connections together; each gets a share of it, 32 KiB to
  /// 512 KiB.
  size_t buffer_budget = 48 << 20;
};

/// One request that is over, for logs and metrics.
struct RequestRecord {
  std::string method;
  std::string path;
  std::string peer;
  int status = 0;  ///< 0: the connection ended before an answer
  uint64_t bytes_received = 0;
  uint64_t bytes_sent = 0;
  base::Duration duration{};
};

struct ServerOptions {
  std::string address = "127.0.0.1";  ///< IPv4 or IPv6, numeric
  int port = 0;                       ///< 0: any that is free
  std::optional<ServerTls> tls;       ///< none: plain HTTP
  int io_threads = 0;                 ///< 0: max(2, processors)
  int handler_threads = 0;            ///< 0: max(4, 2 × processors)
  ServerLimits limits;
  base::Clock* clock = &base::Clock::System();
  /// Called on a thread of the server when a request is over; must be quick.
  std::function<void(const RequestRecord&)> on_request_done;
};

/// Thread-safe. The handler outlives the server.
class Server {
 public:
  /// Listens. kUnavailable where the address is in use, kInvalidArgument for a bad address or bad
  /// certificates, kPermissionDenied.
  static base::Result<std::unique_ptr<Server>> Start(ServerOptions options, Handler& handler);
  /// Stop without grace.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  /// Connections that are open now.
  int connections() const;
  /// Takes no more connections or requests, lets the answers in flight go out for up to `grace`
  /// (parked long polls count: answer them first), closes everything, and returns when no call into
  /// the handler is running. Not from a handler thread.
  void Stop(base::Duration grace);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fl::transport
