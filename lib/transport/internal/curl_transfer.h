#pragma once

#include <curl/curl.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "transport/client.h"
#include "transport/internal/openssl.h"

namespace fl::transport::internal {

/// A multi handle, which keeps the connections, and an easy handle that is used again and again.
struct CurlLane {
  CurlLane() : multi(curl_multi_init()), easy(curl_easy_init()) {}
  bool ok() const { return multi != nullptr && easy != nullptr; }

  std::unique_ptr<CURLM, FreeWith<curl_multi_cleanup>> multi;
  std::unique_ptr<CURL, FreeWith<curl_easy_cleanup>> easy;  // freed first
  std::vector<uint8_t> pieces;  ///< gathers what libcurl hands out in small pieces
};

/// One request and its answer on a lane. Used once, by one thread.
class CurlTransfer {
 public:
  CurlTransfer(CurlLane& lane, const ClientOptions& options, const ClientRequest& request);

  base::Result<ClientResponse> Run();

 private:
  using Slist = std::unique_ptr<curl_slist, FreeWith<curl_slist_free_all>>;

  base::Status OpenBody();
  void SetOptions();
  void SetTlsOptions();
  void SetBodyOptions();
  void AddHeader(const std::string& line);
  /// Drives the transfer to its end; the code of libcurl, or what stopped it in `failure_`.
  CURLcode Drive();
  base::Status Explain(CURLcode code) const;
  /// Hands gathered bytes to the writer.
  bool FlushPieces();
  bool Stalled();

  // What libcurl calls.
  size_t TakeHeader(std::string_view line);
  size_t TakeBody(const uint8_t* bytes, size_t size);
  size_t GiveBody(uint8_t* out, size_t size);
  int SeekBody(curl_off_t offset);
  int GiveTrailers(curl_slist** list);
  int BeforeRequest();
  int OnProgress(curl_off_t received, curl_off_t sent);

  template <typename T>
  void Set(CURLoption option, T value) {
    curl_easy_setopt(lane_.easy.get(), option, value);
  }

  CurlLane& lane_;
  const ClientOptions& options_;
  const ClientRequest& request_;
  Slist header_list_;
  base::UniqueFd file_;
  std::optional<uint64_t> body_length_;
  uint64_t body_offset_ = 0;

  ClientResponse response_;
  bool head_done_ = false;
  bool to_writer_ = false;
  base::Status failure_;  ///< of a callback of ours
  int requests_started_ = 0;
  bool sends_trailers_ = false;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
  curl_off_t progress_ = 0;
  std::chrono::steady_clock::time_point progress_at_;
};

}  // namespace fl::transport::internal
