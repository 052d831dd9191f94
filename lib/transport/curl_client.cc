/// HttpClient on libcurl. A Send takes a lane (a multi handle, with its connections, and an easy
/// handle), so that one caller after the other finds the connection of the last, and callers at the
/// same time do not meet.

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <mutex>
#include <utility>
#include <vector>

#include "transport/client.h"
#include "transport/internal/curl_transfer.h"
#include "transport/internal/openssl.h"

namespace fl::transport {
namespace {

using internal::CurlLane;
using internal::CurlTransfer;

bool StartsWith(std::string_view text, std::string_view lower_case_prefix) {
  return text.size() >= lower_case_prefix.size() &&
         std::equal(lower_case_prefix.begin(), lower_case_prefix.end(), text.begin(),
                    [](char a, char b) { return a == std::tolower(static_cast<uint8_t>(b)); });
}

bool IsOneLine(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

base::Status Check(const ClientRequest& request, const ClientOptions& options) {
  const bool tls = StartsWith(request.url, "https://");
  if (!tls && !StartsWith(request.url, "http://")) {
    return base::InvalidArgument("\"" + request.url + "\" is no http or https address",
                                 "an address looks like https://HOST:PORT/PATH");
  }
  if (!tls && !options.allow_http) {
    return base::InvalidArgument("\"" + request.url + "\" is not encrypted, and TLS is required",
                                 "use https://, or allow plain HTTP by --insecure");
  }
  if (request.method.empty() || !std::all_of(request.method.begin(), request.method.end(),
                                             [](char c) { return c >= 'A' && c <= 'Z'; })) {
    return base::InvalidArgument("\"" + request.method + "\" is no HTTP method");
  }
  for (const auto& [name, value] : request.headers) {
    if (name.empty() || !IsOneLine(name) || !IsOneLine(value)) {
      return base::InvalidArgument("the header field \"" + name + "\" has a line break inside");
    }
  }
  return base::OkStatus();
}

class CurlClient final : public HttpClient {
 public:
  explicit CurlClient(ClientOptions options) : options_(std::move(options)) {}

  base::Result<ClientResponse> Send(const ClientRequest& request) override {
    FL_RETURN_IF_ERROR(Check(request, options_));
    if (request.stop.stop_requested()) return base::Cancelled("stopped before " + request.url);
    std::unique_ptr<CurlLane> lane = TakeLane();
    if (lane == nullptr) return base::ResourceExhausted("libcurl cannot make a handle");
    base::Result<ClientResponse> response = CurlTransfer(*lane, options_, request).Run();
    if (lane->ok()) {
      const std::lock_guard lock(mutex_);
      lanes_.push_back(std::move(lane));
    }
    return response;
  }

 private:
  /// The lane used last is taken first: its connection is the one most likely alive.
  std::unique_ptr<CurlLane> TakeLane() {
    {
      const std::lock_guard lock(mutex_);
      if (!lanes_.empty()) {
        std::unique_ptr<CurlLane> lane = std::move(lanes_.back());
        lanes_.pop_back();
        return lane;
      }
    }
    auto lane = std::make_unique<CurlLane>();
    return lane->ok() ? std::move(lane) : nullptr;
  }

  const ClientOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CurlLane>> lanes_;
};

}  // namespace

bool IsIdempotent(const ClientRequest& request) {
  if (request.idempotent) return true;
  for (const std::string_view method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}) {
    if (request.method == method) return true;
  }
  return false;
}

base::Result<std::unique_ptr<HttpClient>> MakeCurlClient(ClientOptions options) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) return base::Internal("libcurl cannot be started");
  if (!options.ca_pem.empty()) {
    FL_RETURN_IF_ERROR(
        internal::ReadCertificates(options.ca_pem, "the authority to trust").status());
  }
  if (options.certificate_pem.empty() != options.key_pem.empty()) {
    return base::InvalidArgument(
        "a client certificate and its key are given together or not at all");
  }
  if (!options.certificate_pem.empty()) {
    FL_ASSIGN_OR_RETURN(
        const std::vector<internal::X509Ptr> chain,
        internal::ReadCertificates(options.certificate_pem, "the client's certificate"));
    FL_ASSIGN_OR_RETURN(const internal::KeyPtr key,
                        internal::ReadKey(options.key_pem, "the client's private key"));
    if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
      internal::TakeError();
      return base::InvalidArgument("the client's private key does not belong to its certificate",
                                   "give the key that the certificate was issued for");
    }
  }
  return std::unique_ptr<HttpClient>(std::make_unique<CurlClient>(std::move(options)));
}

}  // namespace fl::transport
