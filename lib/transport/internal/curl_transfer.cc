#include "transport/internal/curl_transfer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stop_token>
#include <utility>

#include "base/encoding.h"
#include "transport/internal/tls_context.h"

namespace fl::transport::internal {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr size_t kPieces = size_t{512} << 10;
constexpr long kReceiveBuffer = 512L << 10;
constexpr long kSendBuffer = 512L << 10;

/// libcurl takes milliseconds, where 0 means its own default.
long Milliseconds(base::Duration duration) {
  return std::max<long>(1, static_cast<long>(duration_cast<milliseconds>(duration).count()));
}

curl_blob Blob(const std::string& text) {
  curl_blob blob{};
  blob.data = const_cast<char*>(text.data());  // copied by libcurl, by the flag
  blob.len = text.size();
  blob.flags = CURL_BLOB_COPY;
  return blob;
}

bool MayHaveBody(const std::string& method) {
  return method != "GET" && method != "HEAD" && method != "DELETE" && method != "OPTIONS";
}

}  // namespace

CurlTransfer::CurlTransfer(CurlLane& lane, const ClientOptions& options,
                           const ClientRequest& request)
    : lane_(lane), options_(options), request_(request), progress_at_(SteadyClock::now()) {}

base::Result<ClientResponse> CurlTransfer::Run() {
  FL_RETURN_IF_ERROR(OpenBody());
  curl_easy_reset(lane_.easy.get());
  SetOptions();
  SetTlsOptions();
  SetBodyOptions();
  Set(CURLOPT_HTTPHEADER, header_list_.get());
  const CURLcode code = Drive();
  // libcurl 7.88 keeps how far trailers went in the handle, through resets, and would write before
  // the start of its buffer in the next chunked upload.
  if (sends_trailers_) lane_.easy.reset(curl_easy_init());
  if (!failure_.ok()) return failure_;
  if (code != CURLE_OK) return Explain(code);
  return std::move(response_);
}

base::Status CurlTransfer::OpenBody() {
  if (const auto* text = std::get_if<std::string>(&request_.body)) {
    body_length_ = text->size();
  } else if (const auto* stream = std::get_if<StreamUpload>(&request_.body)) {
    body_length_ = stream->length;
  } else if (const auto* upload = std::get_if<FileUpload>(&request_.body)) {
    const std::string name = upload->path.string();
    file_ = base::UniqueFd(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_.valid()) return base::FromErrno(errno, "open " + name);
    struct stat info{};
    if (::fstat(file_.get(), &info) != 0) return base::FromErrno(errno, "stat " + name);
    const auto size = static_cast<uint64_t>(info.st_size);
    if (upload->offset > size) {
      return base::OutOfRange("cannot send " + name + " from byte " +
                              std::to_string(upload->offset) + ": it has " + std::to_string(size));
    }
    body_length_ = size - upload->offset;
    ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  } else {
    body_length_ = 0;
  }
  return base::OkStatus();
}

void CurlTransfer::AddHeader(const std::string& line) {
  if (curl_slist* grown = curl_slist_append(header_list_.get(), line.c_str()); grown != nullptr) {
    header_list_.release();
    header_list_.reset(grown);
  }
}

void CurlTransfer::SetOptions() {
  Set(CURLOPT_ERRORBUFFER, error_text_.data());
  Set(CURLOPT_URL, request_.url.c_str());
  Set(CURLOPT_NOSIGNAL, 1L);
  Set(CURLOPT_QUICK_EXIT, 1L);
  Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  Set(CURLOPT_PROTOCOLS_STR, options_.allow_http ? "http,https" : "https");
  Set(CURLOPT_REDIR_PROTOCOLS_STR, options_.allow_http ? "http,https" : "https");
  Set(CURLOPT_FOLLOWLOCATION, options_.max_redirects > 0 ? 1L : 0L);
  Set(CURLOPT_MAXREDIRS, static_cast<long>(options_.max_redirects));
  Set(CURLOPT_USERAGENT, options_.user_agent.c_str());
  Set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (!options_.proxy_from_environment) Set(CURLOPT_PROXY, "");
  Set(CURLOPT_TCP_KEEPALIVE, 1L);
  Set(CURLOPT_BUFFERSIZE, kReceiveBuffer);
  Set(CURLOPT_UPLOAD_BUFFERSIZE, kSendBuffer);
  Set(CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(request_.connect_timeout));
  if (request_.timeout > base::Duration(0)) {
    Set(CURLOPT_TIMEOUT_MS, Milliseconds(request_.timeout));
  }

  Set(CURLOPT_HEADERDATA, this);
  Set(
      CURLOPT_HEADERFUNCTION, +[](char* data, size_t, size_t size, void* self) -> size_t {
        return static_cast<CurlTransfer*>(self)->TakeHeader({data, size});
      });
  Set(CURLOPT_WRITEDATA, this);
  Set(
      CURLOPT_WRITEFUNCTION, +[](char* data, size_t, size_t size, void* self) -> size_t {
        return static_cast<CurlTransfer*>(self)->TakeBody(reinterpret_cast<uint8_t*>(data), size);
      });
  Set(CURLOPT_PREREQDATA, this);
  Set(
      CURLOPT_PREREQFUNCTION, +[](void* self, char*, char*, int, int) -> int {
        return static_cast<CurlTransfer*>(self)->BeforeRequest();
      });
  Set(CURLOPT_NOPROGRESS, 0L);
  Set(CURLOPT_XFERINFODATA, this);
  Set(
      CURLOPT_XFERINFOFUNCTION,
      +[](void* self, curl_off_t, curl_off_t received, curl_off_t, curl_off_t sent) -> int {
        return static_cast<CurlTransfer*>(self)->OnProgress(received, sent);
      });
}

void CurlTransfer::SetTlsOptions() {
  Set(CURLOPT_SSLVERSION,
      static_cast<long>(options_.allow_tls12 ? CURL_SSLVERSION_TLSv1_2 : CURL_SSLVERSION_TLSv1_3));
  Set(CURLOPT_TLS13_CIPHERS, kCipherSuites);
  Set(CURLOPT_SSL_VERIFYPEER, options_.verify_server ? 1L : 0L);
  Set(CURLOPT_SSL_VERIFYHOST, options_.verify_server ? 2L : 0L);
  if (!options_.ca_pem.empty()) {
    const curl_blob blob = Blob(options_.ca_pem);
    Set(CURLOPT_CAINFO_BLOB, &blob);
    // Else the folder of the system's authorities would be trusted as well.
    Set(CURLOPT_CAPATH, static_cast<char*>(nullptr));
  }
  if (!options_.certificate_pem.empty()) {
    const curl_blob certificate = Blob(options_.certificate_pem);
    const curl_blob key = Blob(options_.key_pem);
    Set(CURLOPT_SSLCERT_BLOB, &certificate);
    Set(CURLOPT_SSLKEY_BLOB, &key);
  }
}

void CurlTransfer::SetBodyOptions() {
  for (const auto& [name, value] : request_.headers) {
    AddHeader(value.empty() ? name + ";" : name + ": " + value);
  }
  Set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  const bool has_body = !std::holds_alternative<std::monostate>(request_.body);
  if (!has_body && !MayHaveBody(request_.method)) {
    if (request_.method == "HEAD") Set(CURLOPT_NOBODY, 1L);
    return;
  }
  Set(CURLOPT_UPLOAD, 1L);
  Set(CURLOPT_INFILESIZE_LARGE,
      body_length_ ? static_cast<curl_off_t>(*body_length_) : curl_off_t{-1});
  if (request_.expect_continue) {
    AddHeader("Expect: 100-continue");
    Set(CURLOPT_EXPECT_100_TIMEOUT_MS, Milliseconds(request_.continue_timeout));
  } else {
    AddHeader("Expect:");  // libcurl would add one by itself from 1 MB
  }
  Set(CURLOPT_READDATA, this);
  Set(
      CURLOPT_READFUNCTION, +[](char* out, size_t, size_t size, void* self) -> size_t {
        return static_cast<CurlTransfer*>(self)->GiveBody(reinterpret_cast<uint8_t*>(out), size);
      });
  Set(CURLOPT_SEEKDATA, this);
  Set(
      CURLOPT_SEEKFUNCTION, +[](void* self, curl_off_t offset, int) -> int {
        return static_cast<CurlTransfer*>(self)->SeekBody(offset);
      });
  const auto* stream = std::get_if<StreamUpload>(&request_.body);
  if (stream != nullptr && !stream->length && stream->trailers) {
    sends_trailers_ = true;
    Set(CURLOPT_TRAILERDATA, this);
    Set(
        CURLOPT_TRAILERFUNCTION, +[](curl_slist** list, void* self) -> int {
          return static_cast<CurlTransfer*>(self)->GiveTrailers(list);
        });
  }
}

CURLcode CurlTransfer::Drive() {
  CURLM* const multi = lane_.multi.get();
  CURLcode code = CURLE_FAILED_INIT;
  bool done = false;
  if (curl_multi_add_handle(multi, lane_.easy.get()) != CURLM_OK) return code;
  {
    const std::stop_callback wake(request_.stop, [multi] { curl_multi_wakeup(multi); });
    while (!done && failure_.ok()) {
      if (request_.stop.stop_requested()) {
        failure_ = base::Cancelled("stopped while talking to " + request_.url);
        break;
      }
      int running = 0;
      if (curl_multi_perform(multi, &running) != CURLM_OK) break;
      // Bytes are not held back while the peer thinks: a stream's reader wants them now.
      if (!FlushPieces()) break;
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        code = message->data.result;
        done = true;
      }
      if (done || Stalled()) break;
      const auto wait = std::clamp<base::Duration>(
          request_.stall_timeout / 4, std::chrono::milliseconds(5), std::chrono::seconds(1));
      curl_multi_poll(multi, nullptr, 0, static_cast<int>(Milliseconds(wait)), nullptr);
    }
  }
  curl_multi_remove_handle(multi, lane_.easy.get());
  return code;
}

bool CurlTransfer::Stalled() {
  if (request_.stall_timeout <= base::Duration(0)) return false;
  if (SteadyClock::now() - progress_at_ < request_.stall_timeout) return false;
  failure_ = base::DeadlineExceeded("nothing was heard from " + request_.url + " for " +
                                    base::FormatDuration(request_.stall_timeout));
  return true;
}

int CurlTransfer::OnProgress(curl_off_t received, curl_off_t sent) {
  if (received + sent != progress_) {
    progress_ = received + sent;
    progress_at_ = SteadyClock::now();
  }
  if (!request_.stop.stop_requested()) return 0;
  failure_ = base::Cancelled("stopped while talking to " + request_.url);
  return 1;
}

int CurlTransfer::BeforeRequest() {
  long redirects = 0;
  curl_easy_getinfo(lane_.easy.get(), CURLINFO_REDIRECT_COUNT, &redirects);
  ++requests_started_;
  if (requests_started_ <= 1 + redirects || IsIdempotent(request_)) return CURL_PREREQFUNC_OK;
  // libcurl is about to repeat the request since its kept connection was found closed.
  failure_ = base::Unavailable("the connection to " + request_.url +
                               " was lost after the request was sent; the server may have acted");
  return CURL_PREREQFUNC_ABORT;
}

size_t CurlTransfer::TakeHeader(std::string_view line) {
  progress_at_ = SteadyClock::now();
  const size_t size = line.size();
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  if (line.substr(0, 5) == "HTTP/") {  // also after "100 Continue" and redirects
    response_ = ClientResponse();
    head_done_ = to_writer_ = false;
    const size_t space = line.find(' ');
    if (space != std::string_view::npos) {
      const std::string_view code = line.substr(space + 1, 3);
      std::from_chars(code.data(), code.data() + code.size(), response_.status);
    }
    curl_tlssessioninfo* session = nullptr;
    if (curl_easy_getinfo(lane_.easy.get(), CURLINFO_TLS_SSL_PTR, &session) == CURLE_OK &&
        session != nullptr && session->backend == CURLSSLBACKEND_OPENSSL &&
        session->internals != nullptr) {
      response_.tls_exporter = ExportKeyingMaterial(static_cast<SSL*>(session->internals));
    }
    return size;
  }
  if (line.empty()) {
    const bool first_end = !head_done_;
    head_done_ = response_.status >= 200;
    if (first_end && head_done_ && response_.status < 300 && request_.writer != nullptr) {
      to_writer_ = true;
      lane_.pieces.clear();
      failure_ = request_.writer->Start(response_.status, response_.headers);
      if (!failure_.ok()) return 0;
    }
    return size;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  Headers& fields = head_done_ ? response_.trailers : response_.headers;
  fields.Add(std::string(line.substr(0, colon)), std::string(value));
  return size;
}

bool CurlTransfer::FlushPieces() {
  if (!to_writer_ || lane_.pieces.empty()) return true;
  failure_ = request_.writer->Write(lane_.pieces);
  lane_.pieces.clear();
  return failure_.ok();
}

size_t CurlTransfer::TakeBody(const uint8_t* bytes, size_t size) {
  if (!to_writer_) {
    if (size > request_.response_limit - response_.body.size()) {
      failure_ = base::OutOfRange("the answer of " + request_.url + " is longer than " +
                                  std::to_string(request_.response_limit) + " bytes");
      return 0;
    }
    response_.body.append(reinterpret_cast<const char*>(bytes), size);
    return size;
  }
  lane_.pieces.reserve(kPieces);
  if (lane_.pieces.size() + size > kPieces && !FlushPieces()) return 0;
  lane_.pieces.insert(lane_.pieces.end(), bytes, bytes + size);
  return size;
}

size_t CurlTransfer::GiveBody(uint8_t* out, size_t size) {
  if (const auto* text = std::get_if<std::string>(&request_.body)) {
    const size_t n = std::min<size_t>(size, text->size() - body_offset_);
    std::memcpy(out, text->data() + body_offset_, n);
    body_offset_ += n;
    return n;
  }
  if (const auto* upload = std::get_if<FileUpload>(&request_.body)) {
    const size_t wanted = std::min<uint64_t>(size, *body_length_ - body_offset_);
    ssize_t n = 0;
    do {
      n = ::pread(file_.get(), out, wanted, static_cast<off_t>(upload->offset + body_offset_));
    } while (n < 0 && errno == EINTR);
    if (n < 0) failure_ = base::FromErrno(errno, "read " + upload->path.string());
    if (n == 0 && wanted > 0) {
      failure_ = base::DataLoss(upload->path.string() + " became shorter while it was being sent");
    }
    if (!failure_.ok()) return CURL_READFUNC_ABORT;
    body_offset_ += static_cast<uint64_t>(n);
    return static_cast<size_t>(n);
  }
  if (const auto* stream = std::get_if<StreamUpload>(&request_.body)) {
    const base::Result<size_t> n = stream->read({out, size});
    if (!n.ok()) failure_ = n.status();
    if (n.ok() && body_length_) {
      const bool too_long = *n > *body_length_ - body_offset_;
      const bool too_short = *n == 0 && size > 0 && body_offset_ < *body_length_;
      if (too_long || too_short) {
        failure_ = base::Internal("the body of " + request_.method + " " + request_.url +
                                  " does not have the length it was said to have");
      }
    }
    if (!failure_.ok()) return CURL_READFUNC_ABORT;
    body_offset_ += *n;
    return *n;
  }
  return 0;
}

int CurlTransfer::SeekBody(curl_off_t offset) {
  if (const auto* stream = std::get_if<StreamUpload>(&request_.body)) {
    if (offset != 0 || !stream->rewind) return CURL_SEEKFUNC_FAIL;
    failure_ = stream->rewind();
    if (!failure_.ok()) return CURL_SEEKFUNC_FAIL;
  }
  body_offset_ = static_cast<uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int CurlTransfer::GiveTrailers(curl_slist** list) {
  for (const auto& [name, value] : std::get<StreamUpload>(request_.body).trailers()) {
    curl_slist* const grown = curl_slist_append(*list, (name + ": " + value).c_str());
    if (grown == nullptr) return CURL_TRAILERFUNC_ABORT;
    *list = grown;
  }
  return CURL_TRAILERFUNC_OK;
}

base::Status CurlTransfer::Explain(CURLcode code) const {
  std::string what = request_.method + " " + request_.url + ": ";
  what += error_text_[0] != '\0' ? error_text_.data() : curl_easy_strerror(code);
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return base::InvalidArgument(what, "an address looks like https://HOST:PORT/PATH");
    case CURLE_OPERATION_TIMEDOUT:
      return base::DeadlineExceeded(what);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
      return base::PermissionDenied(what + "; the server's certificate is not trusted",
                                    "give the certificate of its authority, and the address by a "
                                    "name that the certificate has");
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
      return base::InvalidArgument(what, "check the certificate and key files");
    case CURLE_TOO_MANY_REDIRECTS:
      return base::FailedPrecondition(what);
    case CURLE_OUT_OF_MEMORY:
      return base::ResourceExhausted(what);
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return base::Unavailable(what, "check the host name in the address");
    case CURLE_COULDNT_CONNECT:
      return base::Unavailable(what, "check the address, and that the server runs there");
    default:
      break;
  }
  // A server that refuses our certificate says so by an alert, which libcurl gives as a broken
  // read.
  for (const std::string_view alert :
       {"certificate required", "bad certificate", "unsupported certificate", "unknown ca",
        "certificate expired", "certificate unknown", "certificate revoked", "handshake failure"}) {
    if (what.find("alert " + std::string(alert)) != std::string::npos) {
      return base::PermissionDenied(what + "; the server does not accept this client's certificate",
                                    "give a certificate signed by the authority that the server "
                                    "trusts for clients");
    }
  }
  return base::Unavailable(what);
}

}  // namespace fl::transport::internal
