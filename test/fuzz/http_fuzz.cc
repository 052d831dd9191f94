// The server's side of one connection, over memory: heads, framings, chunks, trailers, pipelines.
// The first byte says how many bytes come at a time.

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/check.h"
#include "transport/internal/byte_stream.h"
#include "transport/internal/connection.h"
#include "transport/server.h"

namespace {

namespace asio = boost::asio;
using fl::base::Status;
using fl::transport::Accept;
using fl::transport::Buffered;
using fl::transport::Headers;
using fl::transport::RequestContext;
using fl::transport::Responder;
using fl::transport::Response;

class MemoryStream final : public fl::transport::internal::ByteStream {
 public:
  MemoryStream(std::span<const uint8_t> input, size_t piece, std::string& output)
      : input_(input), piece_(piece), output_(output) {}

  asio::awaitable<Status> Handshake() override { co_return fl::base::OkStatus(); }
  asio::awaitable<fl::base::Result<size_t>> Read(std::span<uint8_t> out) override {
    FL_CHECK(!out.empty());
    const size_t n = std::min({out.size(), input_.size(), piece_});
    if (n > 0) std::memcpy(out.data(), input_.data(), n);
    input_ = input_.subspan(n);
    co_return n;
  }
  asio::awaitable<Status> Write(std::span<const uint8_t> bytes,
                                const std::function<void(size_t)>& on_progress) override {
    output_.append(bytes.begin(), bytes.end());
    if (on_progress) on_progress(bytes.size());
    co_return fl::base::OkStatus();
  }
  asio::awaitable<void> CloseGently(uint64_t) override { co_return; }
  void Watch(std::function<void()>) override {}
  void StopWatching() override {}
  Peer Peek() override { return Peer::kSilent; }
  void Cancel() override {}
  void Close() override {}
  void SetBulkBuffer(size_t) override {}
  const std::string& tls_exporter() const override { return tls_exporter_; }
  const std::optional<std::string>& client_certificate_name() const override { return name_; }

 private:
  std::span<const uint8_t> input_;
  const size_t piece_;
  std::string& output_;
  const std::string tls_exporter_;
  const std::optional<std::string> name_;
};

class Sink final : public fl::transport::BodySink {
 public:
  Sink(std::optional<uint64_t> promised, size_t input_size)
      : promised_(promised), input_size_(input_size) {}
  Status Write(std::span<const uint8_t> bytes) override {
    FL_CHECK(!bytes.empty());
    received_ += bytes.size();
    FL_CHECK(received_ <= input_size_);  // no byte comes from nowhere
    for (const uint8_t byte : bytes) sum_ += byte;
    return received_ > 300 ? fl::base::ResourceExhausted("enough") : fl::base::OkStatus();
  }
  void Finish(const Headers& trailers, Responder responder) override {
    FL_CHECK(!promised_ || received_ == *promised_);
    for (const auto& [name, value] : trailers) FL_CHECK(!name.empty());
    std::move(responder).Send(Response{200, {}, std::to_string(sum_)});
  }

 private:
  const std::optional<uint64_t> promised_;
  const size_t input_size_;
  uint64_t received_ = 0;
  uint64_t sum_ = 0;
};

class FuzzHandler final : public fl::transport::Handler {
 public:
  explicit FuzzHandler(size_t input_size) : input_size_(input_size) {}
  Accept OnRequest(const RequestContext& context) override {
    const auto& head = context.head;
    FL_CHECK(!head.method.empty());
    // One length at most, whatever the fields said.
    FL_CHECK(head.headers.GetAll("Content-Length").size() +
                 head.headers.GetAll("Transfer-Encoding").size() <=
             1);
    for (const std::string& segment : head.target.segments) {
      FL_CHECK(!segment.empty() && segment != "." && segment != "..");
      FL_CHECK(segment.find('\0') == std::string::npos);
    }
    const std::string first = head.target.segments.empty() ? "" : head.target.segments[0];
    if (first == "refuse") return fl::transport::ErrorResponse(fl::base::NotFound("no"));
    if (first == "buffer") {
      return Buffered{100, [](std::string body, Responder responder) {
                        std::move(responder).Send(Response{200, {}, std::move(body)});
                      }};
    }
    return std::make_unique<Sink>(head.content_length, input_size_);
  }

 private:
  const size_t input_size_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> input(data + 1, size - 1);
  const size_t piece = data[0] == 0 ? size : data[0];

  FuzzHandler handler(size);
  fl::transport::ServerOptions options;
  options.limits.max_header_bytes = 2048;
  options.limits.max_header_fields = 16;
  options.limits.buffer_budget = 1;  // the smallest buffers
  asio::io_context io(1);
  fl::transport::internal::ConnectionContext context{handler, options, io.get_executor()};
  std::string output;
  auto connection = std::make_shared<fl::transport::internal::Connection>(
      std::make_unique<MemoryStream>(input, piece, output), io.get_executor(), "fuzz", context);
  bool ended = false;
  asio::co_spawn(io, connection->Run(), [&](const std::exception_ptr&) { ended = true; });
  io.run();
  FL_CHECK(ended);
  FL_CHECK(context.bodies_in_flight == 0);
  FL_CHECK(output.empty() || output.substr(0, 9) == "HTTP/1.1 ");
  return 0;
}
