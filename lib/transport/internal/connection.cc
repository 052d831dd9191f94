#include "transport/internal/connection.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <exception>
#include <limits>
#include <utility>

#include "base/encoding.h"
#include "obs/log.h"
#include "transport/internal/response_head.h"

namespace fl::transport::internal {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr size_t kSmallInput = 4096;
constexpr size_t kSmallBody = 16384;
/// A body that was refused but is not longer than this is read and dropped, and the connection
/// kept.
constexpr uint64_t kDroppedBody = 65536;

/// A share of the memory for bodies, while one is in flight.
class BulkShare {
 public:
  BulkShare(ConnectionContext& context, ByteStream& stream) : context_(context), stream_(stream) {
    constexpr size_t kLeast = size_t{32} << 10;
    constexpr size_t kMost = size_t{512} << 10;
    const auto bodies = static_cast<size_t>(++context_.bodies_in_flight);
    // Two buffers each: plain bytes here and ciphertext in the stream.
    bytes_ = std::clamp(context_.options.limits.buffer_budget / bodies / 2, kLeast, kMost);
    stream_.SetBulkBuffer(bytes_);
  }
  ~BulkShare() {
    stream_.SetBulkBuffer(0);
    --context_.bodies_in_flight;
  }
  BulkShare(const BulkShare&) = delete;
  BulkShare& operator=(const BulkShare&) = delete;
  size_t bytes() const { return bytes_; }

 private:
  ConnectionContext& context_;
  ByteStream& stream_;
  size_t bytes_ = 0;
};

base::Status TooLarge(uint64_t limit) {
  return base::OutOfRange("the body is longer than the " + std::to_string(limit) +
                          " bytes taken here");
}

}  // namespace

struct Connection::Exchange {
  Exchange(ConnectionContext& shared, std::function<void()> wake, base::Instant now)
      : context(shared),
        parser(shared.options.limits.max_header_bytes, shared.options.limits.max_header_fields),
        slot(std::make_shared<PendingAnswer>(std::move(wake))),
        started(now) {}
  ~Exchange() { Detach(); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// The Responder's way to the connection ends; who waits for the peer to go is told.
  void Detach() {
    std::function<void()> gone = slot->Detach();
    if (gone) asio::post(context.handler_pool, std::move(gone));
  }
  /// An answer after which the connection cannot go on.
  void Refuse(const ProtocolError& error) {
    answer = ErrorResponse(error.status, error.http_status);
    must_close = true;
  }
  bool has_body() const { return head.content_length != 0; }

  ConnectionContext& context;
  RequestParser parser;
  RequestHead head;
  std::optional<Accept> accept;
  std::string buffered;
  std::optional<Response> answer;
  std::shared_ptr<PendingAnswer> slot;
  bool body_read = false;   ///< nothing of this request is left to come
  bool must_close = false;  ///< where the next request would start is in doubt
  uint64_t body_received = 0;
  const base::Instant started;
  RequestRecord record;
};

Connection::Connection(std::unique_ptr<ByteStream> stream, asio::any_io_executor strand,
                       std::string peer, ConnectionContext& context)
    : stream_(std::move(stream)),
      strand_(std::move(strand)),
      peer_(std::move(peer)),
      context_(context),
      limits_(context.options.limits),
      input_(kSmallInput),
      event_(strand_, asio::steady_timer::time_point::max()),
      deadline_(kNever),
      idle_since_(kNever) {}

void Connection::Arm(base::Instant deadline) {
  timed_out_ = false;
  deadline_.store(deadline.time_since_epoch().count());
}

void Connection::CheckDeadline() {
  if (Now() < deadline()) return;
  deadline_.store(kNever);
  timed_out_ = true;
  stream_->Cancel();
}

std::optional<base::Instant> Connection::idle_since() const {
  const int64_t since = idle_since_.load();
  if (since == kNever) return std::nullopt;
  return base::Instant(base::Duration(since));
}

void Connection::NoLongerIdle() { idle_since_.store(kNever); }

void Connection::FinishSoon() {
  finish_soon_ = true;
  if (awaiting_request_) stream_->Cancel();
}

void Connection::Abort() {
  aborted_ = true;
  finish_soon_ = true;
  stream_->Close();
  event_.cancel();
}

asio::awaitable<void> Connection::Run() {
  // The one place where exceptions of Asio and of memory end.
  try {
    Arm(Now() + limits_.handshake_timeout);
    const base::Status ready = co_await stream_->Handshake();
    After after = ready.ok() || !timed_out_ ? After::kCloseGently : After::kClose;
    if (ready.ok()) {
      do {
        after = co_await ServeRequest();
      } while (after == After::kNextRequest && !finish_soon_);
    }
    if (after != After::kClose && !aborted_) {
      Arm(Now() + limits_.drain_timeout);
      const bool gently = after == After::kCloseGently;
      co_await stream_->CloseGently(gently ? limits_.drain_bytes : 0);
    }
  } catch (const std::exception& exception) {
    obs::Error("a connection failed", {{"peer", peer_}, {"reason", exception.what()}});
  }
  stream_->Close();
}

asio::awaitable<Connection::After> Connection::ServeRequest() {
  Exchange exchange(
      context_,
      [this] {  // only while attached, which is while this frame lives
        asio::post(strand_, [self = shared_from_this()] { self->event_.cancel(); });
      },
      Now());
  const std::optional<After> over = co_await ReadHead(exchange);
  if (over) co_return *over;

  if (!exchange.answer) {
    exchange.body_read = !exchange.has_body();
    co_await CallHandler(exchange);
  }
  if (!exchange.answer && exchange.has_body()) {
    const Body body = co_await ReadBody(exchange);
    if (body == Body::kBroken) {
      FinishRecord(exchange);
      co_return After::kClose;
    }
    if (body == Body::kComplete) co_await FinishBody(exchange);
  }
  if (!exchange.answer) {
    const bool answered = co_await AwaitAnswer(exchange);
    if (!answered) {
      FinishRecord(exchange);
      co_return After::kClose;
    }
  }
  const After after = co_await SendAnswer(exchange);
  FinishRecord(exchange);
  co_return after;
}

/// Ends with the head in `exchange`, or with a refusal in `exchange.answer`, or says how the
/// connection goes on without a request.
asio::awaitable<std::optional<Connection::After>> Connection::ReadHead(Exchange& exchange) {
  bool begun = !input_.empty();
  if (begun) {
    Arm(Now() + limits_.header_timeout);
  } else {
    awaiting_request_ = true;
    idle_since_.store(Now().time_since_epoch().count());
    Arm(Now() + limits_.idle_timeout);
  }
  RequestParser& parser = exchange.parser;
  for (;;) {
    while (!input_.empty()) {
      const RequestParser::Progress progress = parser.PutHead(input_.bytes());
      input_.Consume(progress.consumed);
      if (progress.error) {
        exchange.Refuse(*progress.error);
        co_return std::nullopt;
      }
      if (parser.head_done() || progress.needs_more) break;
    }
    if (parser.head_done()) break;
    if (!begun && finish_soon_) co_return After::kCloseIdle;

    if (input_.full()) {
      input_.SetCapacity(std::min(input_.capacity() * 2, limits_.max_header_bytes + kSmallInput));
    }
    const std::span<uint8_t> room = input_.Room();
    if (room.empty()) {
      exchange.Refuse({431, base::OutOfRange("the header is too long")});
      co_return std::nullopt;
    }
    const base::Result<size_t> n = co_await stream_->Read(room);
    awaiting_request_ = false;
    idle_since_.store(kNever);
    if (!n.ok() || *n == 0) {
      if (begun && timed_out_) {
        exchange.Refuse(
            {408, base::DeadlineExceeded("the header of the request did not come in time")});
        co_return std::nullopt;
      }
      const bool in_peace = n.ok() || timed_out_ || finish_soon_;
      co_return in_peace && !aborted_ ? After::kCloseIdle : After::kClose;
    }
    input_.Added(*n);
    if (!begun) {
      begun = true;
      Arm(Now() + limits_.header_timeout);
    }
  }
  Disarm();
  exchange.head.peer = peer_;
  const std::optional<ProtocolError> error = parser.TakeHead(exchange.head);
  if (error) exchange.Refuse(*error);
  exchange.record.method = exchange.head.method;
  exchange.record.path = exchange.head.target.path;
  exchange.record.peer = peer_;
  co_return std::nullopt;
}

asio::awaitable<base::Status> Connection::OnHandlerThread(std::function<base::Status()> work) {
  base::Status status;
  const auto guarded = [&] {
    std::string reason = "an exception of unknown type";
    try {
      status = work();
      return;
    } catch (const std::exception& exception) {
      reason = exception.what();
    } catch (...) {
    }
    // What went wrong is for our own log, not for the peer.
    obs::Error("a request handler threw", {{"peer", peer_}, {"reason", reason}});
    status = base::Internal("the server failed while it handled the request");
  };
  const auto initiate = [this, &guarded](auto completion) {
    asio::post(context_.handler_pool, [completion = std::move(completion), &guarded]() mutable {
      guarded();
      asio::post(std::move(completion));  // back to the strand
    });
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(initiate,
                                                                       asio::use_awaitable);
  co_return status;
}

/// Asks the handler what to do with the request; one without a body is handled in the same go.
asio::awaitable<void> Connection::CallHandler(Exchange& exchange) {
  const RequestContext context{exchange.head, stream_->tls_exporter(),
                               stream_->client_certificate_name()};
  const base::Status status = co_await OnHandlerThread([&] {
    exchange.accept = context_.handler.OnRequest(context);
    if (exchange.has_body()) return base::OkStatus();
    if (auto* buffered = std::get_if<Buffered>(&*exchange.accept)) {
      buffered->then(std::string(), Responder(exchange.slot));
    } else if (auto* sink = std::get_if<std::unique_ptr<BodySink>>(&*exchange.accept)) {
      (*sink)->Finish(Headers(), Responder(exchange.slot));
      sink->reset();
    }
    return base::OkStatus();
  });
  if (!status.ok()) {
    exchange.answer = ErrorResponse(status);
  } else if (auto* refusal = std::get_if<Response>(&*exchange.accept)) {
    exchange.answer = std::move(*refusal);
  } else if (const auto* buffered = std::get_if<Buffered>(&*exchange.accept);
             buffered != nullptr && exchange.head.content_length.value_or(0) > buffered->limit) {
    exchange.answer = ErrorResponse(TooLarge(buffered->limit));
  }
}

asio::awaitable<Connection::Body> Connection::ReadBody(Exchange& exchange) {
  if (exchange.head.expects_continue && input_.empty()) {
    Pacer pacer(limits_);
    const base::Status told =
        co_await WritePaced(pacer, base::AsBytes("HTTP/1.1 100 Continue\r\n\r\n"), exchange);
    if (!told.ok()) co_return Body::kBroken;
  }
  Body body;
  if (exchange.head.content_length) {
    body = co_await ReadFixedBody(exchange);
  } else {
    body = co_await ReadChunkedBody(exchange);
    input_.SetCapacity(kSmallInput);
  }
  Disarm();
  if (body == Body::kComplete) {
    exchange.body_read = true;
  } else {
    // The sink's destructor may remove files.
    co_await OnHandlerThread([&] {
      exchange.accept.reset();
      return base::OkStatus();
    });
  }
  co_return body;
}

asio::awaitable<base::Result<size_t>> Connection::ReadPaced(Pacer& pacer, std::span<uint8_t> out) {
  Arm(pacer.Start(Now()));
  base::Result<size_t> n = co_await stream_->Read(out);
  pacer.Stop(Now(), n.ok() ? *n : 0);
  if (n.ok() && *n == 0) co_return base::Unavailable("the peer went in the middle of a body");
  co_return n;
}

/// What a failed read of a body means: an answer where the peer may still listen.
Connection::Body Connection::Interrupted(Exchange& exchange) {
  if (!timed_out_ || aborted_) return Body::kBroken;
  exchange.Refuse({408, base::DeadlineExceeded("the body of the request came too slowly")});
  return Body::kRefused;
}

asio::awaitable<Connection::Body> Connection::ReadFixedBody(Exchange& exchange) {
  const uint64_t length = *exchange.head.content_length;
  Pacer pacer(limits_);
  std::optional<BulkShare> share;
  if (length > kSmallBody) share.emplace(context_, *stream_);
  const size_t capacity = std::min<uint64_t>(share ? share->bytes() : kSmallBody, length);
  const auto buffer = std::make_unique_for_overwrite<uint8_t[]>(capacity);
  while (exchange.body_received < length) {
    const uint64_t left = length - exchange.body_received;
    std::span<const uint8_t> piece;
    const bool held = !input_.empty();
    if (held) {
      piece = input_.bytes().first(std::min<uint64_t>(input_.size(), left));
    } else {
      const std::span<uint8_t> room(buffer.get(), std::min<uint64_t>(capacity, left));
      const base::Result<size_t> n = co_await ReadPaced(pacer, room);
      if (!n.ok()) co_return Interrupted(exchange);
      piece = room.first(*n);
    }
    exchange.body_received += piece.size();
    const base::Status taken = co_await Deliver(exchange, piece);
    if (held) input_.Consume(piece.size());
    if (!taken.ok()) {
      exchange.answer = ErrorResponse(taken);
      co_return exchange.body_received == length ? Body::kComplete : Body::kRefused;
    }
  }
  co_return Body::kComplete;
}

asio::awaitable<Connection::Body> Connection::ReadChunkedBody(Exchange& exchange) {
  Pacer pacer(limits_);
  const BulkShare share(context_, *stream_);
  input_.SetCapacity(share.bytes());
  std::vector<std::span<const uint8_t>> pieces;
  while (!exchange.parser.done()) {
    bool needs_more = input_.empty();
    if (!needs_more) {
      pieces.clear();
      const RequestParser::Progress progress = exchange.parser.PutChunked(input_.bytes(), pieces);
      for (const std::span<const uint8_t> piece : pieces) {
        exchange.body_received += piece.size();
        const base::Status taken = co_await Deliver(exchange, piece);
        if (taken.ok()) continue;
        exchange.answer = ErrorResponse(taken);
        co_return Body::kRefused;
      }
      input_.Consume(progress.consumed);
      if (progress.error) {
        exchange.Refuse(*progress.error);
        co_return Body::kRefused;
      }
      needs_more = progress.needs_more || input_.empty();
      if (progress.needs_more && input_.size() > limits_.max_header_bytes) {
        exchange.Refuse({431, base::OutOfRange("a chunk's header or the trailer is too long")});
        co_return Body::kRefused;
      }
    }
    if (!needs_more || exchange.parser.done()) continue;
    const base::Result<size_t> n = co_await ReadPaced(pacer, input_.Room());
    if (!n.ok()) co_return Interrupted(exchange);
    input_.Added(*n);
  }
  co_return Body::kComplete;
}

asio::awaitable<base::Status> Connection::Deliver(Exchange& exchange,
                                                  std::span<const uint8_t> bytes) {
  if (const auto* buffered = std::get_if<Buffered>(&*exchange.accept)) {
    if (bytes.size() > buffered->limit - exchange.buffered.size()) {
      co_return TooLarge(buffered->limit);
    }
    exchange.buffered.append(base::AsText(bytes));
    co_return base::OkStatus();
  }
  BodySink* const sink = std::get<std::unique_ptr<BodySink>>(*exchange.accept).get();
  co_return co_await OnHandlerThread([sink, bytes] { return sink->Write(bytes); });
}

asio::awaitable<void> Connection::FinishBody(Exchange& exchange) {
  if (exchange.answer) co_return;
  const base::Status status = co_await OnHandlerThread([&] {
    if (auto* buffered = std::get_if<Buffered>(&*exchange.accept)) {
      buffered->then(std::move(exchange.buffered), Responder(exchange.slot));
    } else {
      auto& sink = std::get<std::unique_ptr<BodySink>>(*exchange.accept);
      sink->Finish(exchange.parser.trailers(), Responder(exchange.slot));
      sink.reset();
    }
    return base::OkStatus();
  });
  if (!status.ok()) exchange.answer = ErrorResponse(status);
}

/// Waits for the Responder, and watches the peer meanwhile. False where the peer went first.
asio::awaitable<bool> Connection::AwaitAnswer(Exchange& exchange) {
  Disarm();
  bool watching = false;
  bool worth_watching = true;
  for (;;) {
    exchange.answer = exchange.slot->Take();
    if (exchange.answer || aborted_) break;
    if (readable_) {
      readable_ = watching = false;
      const ByteStream::Peer peer = stream_->Peek();
      if (peer == ByteStream::Peer::kGone) co_return false;
      // More came: a pipelined request, behind which the end cannot be seen.
      if (peer == ByteStream::Peer::kSentMore) worth_watching = false;
    }
    if (worth_watching && !watching) {
      watching = true;
      stream_->Watch([self = shared_from_this()] {
        self->readable_ = true;
        self->event_.cancel();
      });
    }
    boost::system::error_code ignored;
    co_await event_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  if (watching) stream_->StopWatching();
  readable_ = false;
  co_return exchange.answer.has_value() && !aborted_;
}

asio::awaitable<Connection::After> Connection::SendAnswer(Exchange& exchange) {
  exchange.Detach();
  const Response& response = *exchange.answer;
  const uint64_t unread = exchange.body_read || !exchange.head.content_length
                              ? 0
                              : *exchange.head.content_length - exchange.body_received;
  const bool droppable =
      exchange.head.content_length && !exchange.head.expects_continue && unread <= kDroppedBody;
  const bool keep = !exchange.must_close && !finish_soon_ && (exchange.body_read || droppable) &&
                    exchange.parser.wants_keep_alive();

  std::string head = ResponseHead(response, keep, context_.options.clock->Now());
  Pacer pacer(limits_);
  const bool bodiless =
      exchange.head.method == "HEAD" || response.status == 204 || response.status == 304;
  const uint64_t length = bodiless ? 0 : BodyLength(response);
  const auto* text = std::get_if<std::string>(&response.body);
  base::Status sent;
  if (text != nullptr && length <= kSmallBody) {
    if (length > 0) head += *text;
    sent = co_await WritePaced(pacer, base::AsBytes(head), exchange);
  } else {
    sent = co_await WritePaced(pacer, base::AsBytes(head), exchange);
    if (sent.ok() && length > 0) {
      if (text != nullptr) {
        const BulkShare share(context_, *stream_);
        sent = co_await WritePaced(pacer, base::AsBytes(*text), exchange);
      } else {
        sent = co_await SendFile(std::get<FileBody>(response.body), pacer, exchange);
      }
    }
  }
  Disarm();
  if (!sent.ok()) co_return After::kClose;
  exchange.record.status = response.status;
  if (!keep) co_return After::kCloseGently;
  if (!exchange.body_read) {
    const bool dropped = co_await DropSmallBody(exchange);
    if (!dropped) co_return After::kClose;
  }
  co_return After::kNextRequest;
}

asio::awaitable<base::Status> Connection::WritePaced(Pacer& pacer, std::span<const uint8_t> bytes,
                                                     Exchange& exchange) {
  Arm(pacer.Start(Now()));
  const std::function<void(size_t)> on_progress = [&](size_t n) {
    const base::Instant now = Now();
    exchange.record.bytes_sent += n;
    pacer.Stop(now, n);
    Arm(pacer.Start(now));
  };
  const base::Status written = co_await stream_->Write(bytes, on_progress);
  pacer.Stop(Now(), 0);
  Disarm();
  co_return written;
}

asio::awaitable<base::Status> Connection::SendFile(const FileBody& file, Pacer& pacer,
                                                   Exchange& exchange) {
  const BulkShare share(context_, *stream_);
  const size_t capacity = std::min<uint64_t>(share.bytes(), file.length);
  const auto buffer = std::make_unique_for_overwrite<uint8_t[]>(capacity);
  uint64_t sent = 0;
  while (sent < file.length) {
    const size_t wanted = std::min<uint64_t>(capacity, file.length - sent);
    const ssize_t n =
        ::pread(file.file->get(), buffer.get(), wanted, static_cast<off_t>(file.offset + sent));
    if (n < 0 && errno == EINTR) continue;
    // The length was promised in the head: cutting the connection is all that is left to say.
    if (n < 0) co_return base::FromErrno(errno, "read of a file that is being sent");
    if (n == 0) co_return base::DataLoss("a file became shorter while it was being sent");
    const base::Status written = co_await WritePaced(
        pacer, std::span<const uint8_t>(buffer.get(), static_cast<size_t>(n)), exchange);
    if (!written.ok()) co_return written;
    sent += static_cast<uint64_t>(n);
  }
  co_return base::OkStatus();
}

/// Reads the rest of a short body that was refused, so that the next request can follow.
asio::awaitable<bool> Connection::DropSmallBody(Exchange& exchange) {
  Pacer pacer(limits_);
  uint64_t left = *exchange.head.content_length - exchange.body_received;
  while (left > 0) {
    if (input_.empty()) {
      const base::Result<size_t> n = co_await ReadPaced(pacer, input_.Room());
      if (!n.ok()) co_return false;
      input_.Added(*n);
    }
    const uint64_t dropped = std::min<uint64_t>(left, input_.size());
    input_.Consume(dropped);
    left -= dropped;
  }
  Disarm();
  co_return true;
}

void Connection::FinishRecord(Exchange& exchange) {
  if (!context_.options.on_request_done) return;
  exchange.record.bytes_received = exchange.body_received;
  exchange.record.duration = Now() - exchange.started;
  context_.options.on_request_done(exchange.record);
}

}  // namespace fl::transport::internal
