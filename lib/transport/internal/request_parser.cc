#include "transport/internal/request_parser.h"

#include <algorithm>
#include <array>
#include <boost/beast/http/error.hpp>
#include <utility>

namespace fl::transport::internal {
namespace {

namespace http = boost::beast::http;

ProtocolError Bad(std::string message) { return {400, base::InvalidArgument(std::move(message))}; }

/// Fields that mean something to the framing or to access, which a trailer may not carry (RFC 9110
/// section 6.5.1).
bool ForbiddenInTrailer(http::field name) {
  constexpr std::array kForbidden = {http::field::content_length, http::field::transfer_encoding,
                                     http::field::host,           http::field::authorization,
                                     http::field::connection,     http::field::content_encoding,
                                     http::field::content_type,   http::field::content_range,
                                     http::field::trailer,        http::field::te,
                                     http::field::expect,         http::field::cookie};
  return std::find(kForbidden.begin(), kForbidden.end(), name) != kForbidden.end();
}

}  // namespace

RequestParser::RequestParser(size_t max_header_bytes, size_t max_header_fields)
    : max_header_bytes_(max_header_bytes), max_header_fields_(max_header_fields) {
  header_limit(static_cast<std::uint32_t>(std::min<size_t>(max_header_bytes, 1 << 30)));
  body_limit(boost::none);  // the caller counts
}

void RequestParser::on_request_impl(http::verb, View method, View target, int version, ErrorCode&) {
  method_.assign(method.data(), method.size());
  target_.assign(target.data(), target.size());
  version_ = version;
}

void RequestParser::on_field_impl(http::field name, View text, View value, ErrorCode& error) {
  Headers& fields = head_done_ ? trailers_ : headers_;
  if (fields.size() >= max_header_fields_) {
    error = http::error::header_limit;
    return;
  }
  if (head_done_ && ForbiddenInTrailer(name)) {
    error = http::error::bad_field;
    return;
  }
  fields.Add(std::string(text.data(), text.size()), std::string(value.data(), value.size()));
}

size_t RequestParser::on_chunk_body_impl(uint64_t, View body, ErrorCode&) {
  pieces_->emplace_back(reinterpret_cast<const uint8_t*>(body.data()), body.size());
  return body.size();
}

ProtocolError RequestParser::Explain(const ErrorCode& error) const {
  if (error == http::error::header_limit) {
    return {431, base::OutOfRange("the header fields are too many or too long: at most " +
                                  std::to_string(max_header_fields_) + " fields and " +
                                  std::to_string(max_header_bytes_) + " bytes are taken")};
  }
  if (error == http::error::bad_version) {
    return {505, base::Unimplemented("this server speaks HTTP/1.1")};
  }
  return Bad("malformed HTTP request: " + error.message());
}

RequestParser::Progress RequestParser::Put(std::span<const uint8_t> bytes) {
  Progress progress;
  ErrorCode error;
  progress.consumed = put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
  if (error == http::error::need_more) {
    progress.needs_more = true;
  } else if (error) {
    progress.error = Explain(error);
  }
  return progress;
}

RequestParser::Progress RequestParser::PutHead(std::span<const uint8_t> bytes) {
  size_t skipped = 0;
  if (method_.empty()) {  // empty lines before a request are to be ignored (RFC 9112 section 2.2)
    while (skipped + 1 < bytes.size() && bytes[skipped] == '\r' && bytes[skipped + 1] == '\n') {
      skipped += 2;
    }
    const std::span<const uint8_t> rest = bytes.subspan(skipped);
    if (rest.empty() || (rest.size() == 1 && rest[0] == '\r')) {
      return {skipped, /*needs_more=*/true, std::nullopt};
    }
  }
  Progress progress = Put(bytes.subspan(skipped));
  progress.consumed += skipped;
  return progress;
}

RequestParser::Progress RequestParser::PutChunked(std::span<const uint8_t> bytes,
                                                  std::vector<std::span<const uint8_t>>& pieces) {
  eager(true);
  pieces_ = &pieces;
  const Progress progress = Put(bytes);
  pieces_ = nullptr;
  return progress;
}

std::optional<ProtocolError> RequestParser::TakeHead(RequestHead& head) {
  head.method = std::move(method_);
  base::Result<Target> target = Target::Parse(target_);
  head.headers = std::move(headers_);
  if (!target.ok()) return ProtocolError{400, target.status()};
  head.target = std::move(target).value();

  const size_t lengths = head.headers.GetAll("Content-Length").size();
  const std::vector<std::string_view> encodings = head.headers.GetAll("Transfer-Encoding");
  if (lengths > 1 || encodings.size() > 1 || (lengths == 1 && !encodings.empty())) {
    return Bad("the length of the body is given twice");
  }
  if (!encodings.empty()) {
    if (version_ < 11) return Bad("Transfer-Encoding in an HTTP/1.0 request");
    // Beast takes a list that ends so; what the other encodings would make of the body is unclear.
    const View encoding(encodings[0].data(), encodings[0].size());
    if (!chunked() || !boost::beast::iequals(encoding, "chunked")) {
      return ProtocolError{501,
                           base::Unimplemented("the only transfer encoding taken is \"chunked\"")};
    }
  }
  if (lengths == 1) {
    const base::Result<uint64_t> length = head.headers.GetNumber("Content-Length");
    if (!length.ok()) return ProtocolError{400, length.status()};
    head.content_length = *length;
  } else if (!encodings.empty()) {
    head.content_length = std::nullopt;
  } else {
    head.content_length = 0;
  }
  const size_t hosts = head.headers.GetAll("Host").size();
  if (hosts > 1 || (hosts == 0 && version_ == 11)) {
    return Bad("an HTTP/1.1 request has exactly one Host field");
  }
  if (const auto expectation = head.headers.Get("Expect"); expectation && version_ == 11) {
    if (!boost::beast::iequals(View(expectation->data(), expectation->size()), "100-continue")) {
      return ProtocolError{417, base::InvalidArgument("the only expectation met is 100-continue")};
    }
    head.expects_continue = head.content_length != 0;
  }
  return std::nullopt;
}

}  // namespace fl::transport::internal
