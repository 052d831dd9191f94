#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "transport/internal/answer_slot.h"
#include "transport/internal/byte_stream.h"
#include "transport/internal/input_buffer.h"
#include "transport/internal/pacer.h"
#include "transport/internal/request_parser.h"
#include "transport/server.h"

namespace fl::transport::internal {

/// What the connections of one server share. Outlives them.
struct ConnectionContext {
  Handler& handler;
  const ServerOptions& options;
  asio::any_io_executor handler_pool;
  std::atomic<int> bodies_in_flight{0};
};

/// HTTP/1.1 on one connection. All of it runs on its strand, but for calls into the handler, for
/// which the coroutine waits, and the few functions marked as for any thread.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::unique_ptr<ByteStream> stream, asio::any_io_executor strand, std::string peer,
             ConnectionContext& context);

  /// Serves until the connection is over.
  asio::awaitable<void> Run();

  /// Interrupts what waits for the peer for too long.
  void CheckDeadline();
  /// No more requests; the one in progress is finished.
  void FinishSoon();
  /// Ends it now.
  void Abort();

  /// Any thread: when what the connection waits for must have come.
  base::Instant deadline() const { return base::Instant(base::Duration(deadline_.load())); }
  /// Any thread: since when it waits for a request, where it does.
  std::optional<base::Instant> idle_since() const;
  /// Any thread: it was chosen to make room, and is not to be chosen again.
  void NoLongerIdle();
  const asio::any_io_executor& strand() const { return strand_; }

 private:
  enum class After {
    kNextRequest,
    kCloseIdle,    ///< nobody is in the middle of anything
    kCloseGently,  ///< the peer may still be sending, and must get to read the answer
    kClose
  };
  /// One request, from its head to the end of its answer.
  struct Exchange;
  enum class Body { kComplete, kRefused, kBroken };

  asio::awaitable<After> ServeRequest();
  asio::awaitable<std::optional<After>> ReadHead(Exchange& exchange);
  asio::awaitable<void> CallHandler(Exchange& exchange);
  asio::awaitable<Body> ReadBody(Exchange& exchange);
  asio::awaitable<Body> ReadFixedBody(Exchange& exchange);
  asio::awaitable<Body> ReadChunkedBody(Exchange& exchange);
  asio::awaitable<base::Status> Deliver(Exchange& exchange, std::span<const uint8_t> bytes);
  asio::awaitable<base::Result<size_t>> ReadPaced(Pacer& pacer, std::span<uint8_t> out);
  Body Interrupted(Exchange& exchange);
  asio::awaitable<void> FinishBody(Exchange& exchange);
  asio::awaitable<bool> AwaitAnswer(Exchange& exchange);
  asio::awaitable<After> SendAnswer(Exchange& exchange);
  asio::awaitable<base::Status> SendFile(const FileBody& file, Pacer& pacer, Exchange& exchange);
  asio::awaitable<base::Status> WritePaced(Pacer& pacer, std::span<const uint8_t> bytes,
                                           Exchange& exchange);
  asio::awaitable<bool> DropSmallBody(Exchange& exchange);
  void FinishRecord(Exchange& exchange);

  /// Runs `work` on a handler thread and waits for it; an exception becomes a Status.
  asio::awaitable<base::Status> OnHandlerThread(std::function<base::Status()> work);

  base::Instant Now() const { return context_.options.clock->Monotonic(); }
  void Arm(base::Instant deadline);
  void Disarm() { Arm(base::Instant::max()); }

  const std::unique_ptr<ByteStream> stream_;
  const asio::any_io_executor strand_;
  const std::string peer_;
  ConnectionContext& context_;
  const ServerLimits& limits_;
  InputBuffer input_;
  asio::steady_timer event_;  ///< never expires; cancelling it wakes AwaitAnswer
  bool readable_ = false;
  bool awaiting_request_ = false;
  bool finish_soon_ = false;
  bool aborted_ = false;
  bool timed_out_ = false;
  std::atomic<int64_t> deadline_;
  std::atomic<int64_t> idle_since_;
};

}  // namespace fl::transport::internal
