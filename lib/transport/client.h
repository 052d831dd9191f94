#pragma once

/// The HTTP client: the seam through which every program of ours talks to another over HTTP.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <variant>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/status.h"
#include "transport/http.h"

namespace fl::transport {

/// A file as the body of a request, streamed from `offset` to its end. Content-Length is its size
/// when the request starts.
struct FileUpload {
  base::Path path;
  uint64_t offset = 0;
};

/// A body that is made while it is sent.
struct StreamUpload {
  /// Fills the front of the span and returns how much; 0 is the end. An error ends the request and
  /// is what Send returns.
  std::function<base::Result<size_t>(std::span<uint8_t>)> read;
  /// Where known; else the body goes in chunks.
  std::optional<uint64_t> length;
  /// Starts over, for a retry; without it the request is not retried.
  std::function<base::Status()> rewind;
  /// Called after the last byte of a body without `length`: fields for the trailer, e.g.
  /// Repr-Digest.
  std::function<Headers()> trailers;
};

using RequestBody = std::variant<std::monostate, std::string, FileUpload, StreamUpload>;

/// Takes the body of a successful (2xx) answer as it comes, on the thread of Send.
class BodyWriter {
 public:
  virtual ~BodyWriter() = default;
  /// The head is in, and bytes follow from the start of this answer's body. A retry calls it again:
  /// start over, or return an error, which ends the request and is what Send returns. Look at
  /// `http_status`: a range asked for may come as 200, whole.
  virtual base::Status Start(int http_status, const Headers& headers) = 0;
  virtual base::Status Write(std::span<const uint8_t> bytes) = 0;
};

struct ClientRequest {
  std::string method = "GET";
  std::string url;
  Headers headers;
  RequestBody body;
  /// Wait for the server's word before a body is sent (for up to `continue_timeout`, then send).
  bool expect_continue = false;
  base::Duration continue_timeout = std::chrono::seconds(30);
  /// Where set, takes the body of a 2xx answer; other answers stay in ClientResponse.body.
  BodyWriter* writer = nullptr;
  /// The most that ClientResponse.body may hold (kOutOfRange past it).
  uint64_t response_limit = 16 << 20;
  base::Duration timeout{};  ///< for all of one attempt; 0: none
  base::Duration connect_timeout = std::chrono::seconds(10);
  /// The longest time without a byte in either direction; must exceed the wait of a long poll. 0:
  /// none.
  base::Duration stall_timeout = std::chrono::seconds(120);
  std::stop_token stop;
  /// The request may be sent twice without harm. GET, HEAD, PUT, DELETE and OPTIONS always may.
  bool idempotent = false;
};

struct ClientResponse {
  int status = 0;
  Headers headers;
  Headers trailers;
  std::string body;
  /// 32 bytes shared with the server on the TLS connection that brought this answer (see
  /// kTlsExporterLabel in server.h); "" without TLS.
  std::string tls_exporter;

  /// StatusFromResponse of it.
  base::Status ToStatus() const { return StatusFromResponse(status, body); }
};

/// Sends requests. Thread-safe; Send blocks its caller.
///
/// Any answer, 4xx and 5xx too, is a success of Send. Its errors are of the way there:
/// - kUnavailable: no connection, or it broke before the answer was whole. The server may have
///   acted. The message names the address.
/// - kDeadlineExceeded: `timeout`, `connect_timeout` or `stall_timeout`.
/// - kCancelled: `stop`.
/// - kPermissionDenied: the server's certificate is not trusted, or ours not by the server.
/// - kInvalidArgument: the URL or the request is malformed; plain http:// where only TLS is
/// allowed.
/// - kOutOfRange: the answer is longer than `response_limit`.
/// - what a body's reader or writer returned.
///
/// Nobody retries inside, but for one thing: a kept connection found closed before any of the
/// answer came is replaced by a new one, if the request may be sent twice. RetryingClient retries.
///
/// One caller that sends one request after the other stays on one connection as long as the server
/// keeps it open; callers at the same time use connections of their own.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  virtual base::Result<ClientResponse> Send(const ClientRequest& request) = 0;
};

/// GET, HEAD, PUT, DELETE, OPTIONS, or marked so.
bool IsIdempotent(const ClientRequest& request);

struct ClientOptions {
  /// Whom to trust, PEM; "" for the system's authorities. Only these where set.
  std::string ca_pem;
  /// Our own certificate and key, PEM, where the server asks for one.
  std::string certificate_pem;
  std::string key_pem;
  bool allow_http = false;             ///< plain http:// URLs
  bool verify_server = true;           ///< false: any certificate (`--insecure`, and no other way)
  bool allow_tls12 = false;            ///< for servers that are not ours
  bool proxy_from_environment = true;  ///< HTTPS_PROXY, NO_PROXY, …
  int max_redirects = 0;               ///< followed; credentials do not go to another host
  std::string user_agent = "fl";
};

/// The client on libcurl. kInvalidArgument where a PEM text cannot be read or the key does not
/// match the certificate.
base::Result<std::unique_ptr<HttpClient>> MakeCurlClient(ClientOptions options);

struct RetryOptions {
  int max_attempts = 5;
  base::Duration initial_delay = std::chrono::milliseconds(200);
  base::Duration max_delay = std::chrono::seconds(10);
  /// No attempt starts later than this after the first.
  base::Duration give_up_after = std::chrono::minutes(2);
};

/// Waits for a duration; kCancelled where `stop` comes first.
using Sleeper = std::function<base::Status(base::Duration, const std::stop_token& stop)>;
/// Sleeps in real time.
base::Status SleepFor(base::Duration duration, const std::stop_token& stop);

/// Sends again, after a wait, what may be sent twice: on kUnavailable and kDeadlineExceeded, and on
/// answers 429, 502, 503 and 504, whose Retry-After (seconds) it respects. The last answer or error
/// is returned as it is. Requests that are not idempotent, and streams that cannot be rewound, pass
/// through once. Thread-safe.
class RetryingClient final : public HttpClient {
 public:
  /// The references outlive the client.
  RetryingClient(HttpClient& inner, RetryOptions options,
                 base::Clock& clock = base::Clock::System(),
                 base::RandomSource& random = base::RandomSource::Secure(),
                 Sleeper sleeper = SleepFor);
  base::Result<ClientResponse> Send(const ClientRequest& request) override;

 private:
  HttpClient& inner_;
  const RetryOptions options_;
  base::Clock& clock_;
  base::RandomSource& random_;
  const Sleeper sleeper_;
};

}  // namespace fl::transport
