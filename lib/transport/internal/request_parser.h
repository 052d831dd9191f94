#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "transport/http.h"

namespace fl::transport::internal {

/// A refusal by the protocol itself, with the HTTP status that says it.
struct ProtocolError {
  int http_status = 400;
  base::Status status;
};

/// One request from its bytes: the head, and the pieces of a chunked body. Beast reads the grammar;
/// this class adds what a server has to be strict about so that nobody in front of it can be made
/// to see another request than it does (RFC 9112 sections 6.1 and 6.3).
class RequestParser final : private boost::beast::http::basic_parser<true> {
 public:
  RequestParser(size_t max_header_bytes, size_t max_header_fields);

  struct Progress {
    size_t consumed = 0;
    bool needs_more = false;  ///< nothing can be done before more bytes come
    std::optional<ProtocolError> error;
  };
  /// Reads on in `bytes`, which start where the last call stopped, up to the end of the head.
  Progress PutHead(std::span<const uint8_t> bytes);
  /// Reads a piece of a chunked body; `pieces` are views into `bytes`. Past the last chunk the
  /// trailers are in `trailers()` and done() is true.
  Progress PutChunked(std::span<const uint8_t> bytes,
                      std::vector<std::span<const uint8_t>>& pieces);

  bool head_done() const { return head_done_; }
  bool done() const { return is_done(); }
  bool chunked_body() const { return chunked(); }
  /// The peer's wish, by version and Connection field.
  bool wants_keep_alive() const { return keep_alive(); }
  int version() const { return version_; }
  const Headers& trailers() const { return trailers_; }
  /// The head that was read; valid when head_done(). kInvalidArgument and the like where the fields
  /// contradict each other. Once.
  std::optional<ProtocolError> TakeHead(RequestHead& head);

 private:
  using ErrorCode = boost::beast::error_code;
  using View = boost::beast::string_view;

  void on_request_impl(boost::beast::http::verb, View method, View target, int version,
                       ErrorCode& error) override;
  void on_response_impl(int, View, int, ErrorCode&) override {}
  void on_field_impl(boost::beast::http::field name, View text, View value,
                     ErrorCode& error) override;
  void on_header_impl(ErrorCode&) override { head_done_ = true; }
  void on_body_init_impl(const boost::optional<uint64_t>&, ErrorCode&) override {}
  size_t on_body_impl(View body, ErrorCode&) override { return body.size(); }
  void on_chunk_header_impl(uint64_t, View, ErrorCode&) override {}
  size_t on_chunk_body_impl(uint64_t remaining, View body, ErrorCode&) override;
  void on_finish_impl(ErrorCode&) override {}

  Progress Put(std::span<const uint8_t> bytes);
  ProtocolError Explain(const ErrorCode& error) const;

  const size_t max_header_bytes_;
  const size_t max_header_fields_;
  std::string method_;
  std::string target_;
  int version_ = 0;
  Headers headers_;
  Headers trailers_;
  bool head_done_ = false;
  std::vector<std::span<const uint8_t>>* pieces_ = nullptr;
};

}  // namespace fl::transport::internal
