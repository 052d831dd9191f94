/// What the server does about peers that are slow, many or rude. Its clock moves only here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <vector>

#include "base/testing/simulated_clock.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"
#include "transport/server.h"
#include "transport/testing/function_handler.h"
#include "transport/testing/raw_connection.h"

namespace fl::transport {
namespace {

using base::IsOk;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ServerLimitsTest : public ::testing::Test {
 protected:
  void Serve(ServerOptions options = {}) {
    options.clock = &clock_;
    handler_ = std::make_unique<FunctionHandler>([this](const RequestContext& context) -> Accept {
      if (context.head.method == "GET") return Response{200, {}, answer_};
      return std::make_unique<FunctionSink>(
          [](std::span<const uint8_t>) { return base::OkStatus(); },
          [](const Headers&, Responder responder) {
            std::move(responder).Send(Response{200, {}, "all there"});
          },
          [this] { ++aborted_; });
    });
    server_ = Server::Start(options, *handler_).value();
  }
  RawConnection Connect() { return RawConnection::Open(server_->port()).value(); }

  /// Moves the clock, step by step, until the peer closes. Gives what it said, and how long it took
  /// by the clock. `trickle` is sent once in every simulated second.
  struct End {
    std::string said;
    base::Duration after;
  };
  End UntilClosed(RawConnection& connection, std::string_view trickle = "") {
    const base::Instant start = clock_.Monotonic();
    auto all = std::async(std::launch::async, [&] { return connection.ReceiveAll(); });
    base::Duration sent_at{};
    while (all.wait_for(milliseconds(2)) != std::future_status::ready) {
      clock_.Advance(milliseconds(250));
      const base::Duration elapsed = clock_.Monotonic() - start;
      if (!trickle.empty() && elapsed - sent_at >= seconds(1)) {
        sent_at = elapsed;
        const base::Status sent = connection.Send(trickle);
        if (!sent.ok()) trickle = "";
      }
    }
    return {all.get().value_or("reset"), clock_.Monotonic() - start};
  }

  base::SimulatedClock clock_;
  std::string answer_ = "fine";
  std::atomic<int> aborted_ = 0;
  std::unique_ptr<FunctionHandler> handler_;
  std::unique_ptr<Server> server_;
};

/// Sweeps come in real time; deadlines are then late by what the test moved the clock meanwhile.
constexpr auto kSlack = seconds(120);

TEST_F(ServerLimitsTest, AnIdleConnectionIsClosedInSilence) {
  ServerOptions options;
  options.limits.idle_timeout = seconds(75);
  options.limits.drain_timeout = milliseconds(50);  // sweep often
  Serve(options);
  RawConnection connection = Connect();
  const End end = UntilClosed(connection);
  EXPECT_EQ(end.said, "");
  EXPECT_GE(end.after, seconds(75));
  EXPECT_LE(end.after, seconds(75) + kSlack);
}

TEST_F(ServerLimitsTest, AHeadThatTricklesInGets408) {
  ServerOptions options;
  options.limits.header_timeout = seconds(20);
  options.limits.drain_timeout = milliseconds(50);
  Serve(options);
  RawConnection connection = Connect();
  ASSERT_THAT(connection.Send("GET / HTTP/1.1\r\nHost: h\r\n"), IsOk());
  const End end = UntilClosed(connection, "A: b\r\n");
  EXPECT_THAT(end.said, AllOf(StartsWith("HTTP/1.1 408"), HasSubstr("did not come in time")));
  EXPECT_GE(end.after, seconds(20));
  EXPECT_LE(end.after, seconds(20) + kSlack);
}

TEST_F(ServerLimitsTest, ABodyThatStopsGets408) {
  ServerOptions options;
  options.limits.progress_timeout = seconds(60);
  options.limits.drain_timeout = milliseconds(50);
  Serve(options);
  for (const std::string framing : {"Content-Length: 100", "Transfer-Encoding: chunked"}) {
    RawConnection connection = Connect();
    ASSERT_THAT(connection.Send("PUT / HTTP/1.1\r\nHost: h\r\n" + framing + "\r\n\r\n5\r\n"),
                IsOk());
    const End end = UntilClosed(connection);
    EXPECT_THAT(end.said, AllOf(StartsWith("HTTP/1.1 408"), HasSubstr("Connection: close")));
    EXPECT_GE(end.after, seconds(60));
    EXPECT_LE(end.after, seconds(60) + kSlack);
  }
  EXPECT_EQ(aborted_, 2);
}

TEST_F(ServerLimitsTest, ABodyThatTricklesInIsTooSlowInTheEnd) {
  ServerOptions options;
  options.limits.progress_timeout = seconds(60);
  options.limits.progress_grace = seconds(100);
  options.limits.min_bytes_per_second = 1000;
  options.limits.drain_timeout = milliseconds(50);
  Serve(options);
  RawConnection connection = Connect();
  ASSERT_THAT(connection.Send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n"),
              IsOk());
  const End end = UntilClosed(connection, "x");
  EXPECT_THAT(end.said, StartsWith("HTTP/1.1 408"));
  EXPECT_GE(end.after, seconds(100));
  EXPECT_LE(end.after, seconds(100) + kSlack);
}

TEST_F(ServerLimitsTest, AReaderThatDoesNotReadIsCutOff) {
  ServerOptions options;
  options.limits.progress_timeout = seconds(60);
  options.limits.drain_timeout = milliseconds(50);
  answer_ = std::string(64 << 20, 'x');
  Serve(options);
  RawConnection connection = Connect();
  ASSERT_THAT(connection.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), IsOk());
  const base::Instant start = clock_.Monotonic();
  while (server_->connections() == 0) std::this_thread::yield();
  while (server_->connections() > 0) {
    clock_.Advance(milliseconds(10));
    std::this_thread::yield();
  }
  EXPECT_GE(clock_.Monotonic() - start, seconds(60));
  EXPECT_LT(connection.ReceiveAll().value_or("reset").size(), answer_.size());
}

TEST_F(ServerLimitsTest, ASlowHandlerIsNotThePeersFault) {
  std::promise<void> begun;
  std::promise<void> release;
  handler_ = std::make_unique<FunctionHandler>([&](const RequestContext&) -> Accept {
    return std::make_unique<FunctionSink>(
        [&](std::span<const uint8_t>) {
          begun.set_value();
          release.get_future().wait();
          return base::OkStatus();
        },
        [](const Headers&, Responder responder) {
          std::move(responder).Send(Response{200, {}, "in the end"});
        });
  });
  ServerOptions options;
  options.clock = &clock_;
  options.limits.drain_timeout = milliseconds(50);
  server_ = Server::Start(options, *handler_).value();
  RawConnection connection = Connect();
  ASSERT_THAT(connection.Send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"), IsOk());
  begun.get_future().wait();
  clock_.Advance(std::chrono::hours(5));
  // Another connection times out: the sweep has seen the new time.
  RawConnection idle = Connect();
  EXPECT_EQ(UntilClosed(idle).said, "");
  release.set_value();
  EXPECT_THAT(connection.ReceiveResponse().value(), HasSubstr("in the end"));
}

TEST_F(ServerLimitsTest, ALongPollMayWaitForEver) {
  std::promise<Responder> parked;
  handler_ = std::make_unique<FunctionHandler>([&](const RequestContext&) -> Accept {
    return Buffered{
        0, [&](std::string, Responder responder) { parked.set_value(std::move(responder)); }};
  });
  ServerOptions options;
  options.clock = &clock_;
  options.limits.drain_timeout = milliseconds(50);
  server_ = Server::Start(options, *handler_).value();
  RawConnection connection = Connect();
  ASSERT_THAT(connection.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), IsOk());
  Responder responder = parked.get_future().get();
  RawConnection idle = Connect();
  clock_.Advance(std::chrono::hours(5));
  EXPECT_EQ(UntilClosed(idle).said, "");
  EXPECT_FALSE(responder.disconnected());
  std::move(responder).Send(Response{200, {}, "at last"});
  EXPECT_THAT(connection.ReceiveResponse().value(), HasSubstr("at last"));
}

TEST_F(ServerLimitsTest, PastTheLimitTheLongestIdleConnectionGoes) {
  ServerOptions options;
  options.limits.max_connections = 3;
  Serve(options);
  std::vector<RawConnection> connections;
  for (int i = 0; i < 3; ++i) {
    connections.push_back(Connect());
    ASSERT_THAT(connections.back().Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), IsOk());
    ASSERT_THAT(connections.back().ReceiveResponse(), IsOk());
    clock_.Advance(seconds(1));
  }
  RawConnection fourth = Connect();
  EXPECT_EQ(connections[0].ReceiveAll().value(), "");  // the oldest
  ASSERT_THAT(fourth.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), IsOk());
  EXPECT_THAT(fourth.ReceiveResponse(), IsOk());
  EXPECT_THAT(connections[1].Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), IsOk());
  EXPECT_THAT(connections[1].ReceiveResponse(), IsOk());
}

TEST_F(ServerLimitsTest, PastTheLimitANewOneIsRefusedWhereAllAreBusy) {
  ServerOptions options;
  options.limits.max_connections = 2;
  Serve(options);
  std::vector<RawConnection> busy;
  for (int i = 0; i < 2; ++i) {
    busy.push_back(Connect());
    // Accepted, and in the middle of a request.
    ASSERT_THAT(busy.back().Send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n"
                                 "Expect: 100-continue\r\n\r\n"),
                IsOk());
    EXPECT_THAT(busy.back().ReceiveResponse().value(), StartsWith("HTTP/1.1 100"));
  }
  RawConnection third = Connect();
  EXPECT_EQ(third.ReceiveAll().value_or(""), "");
  ASSERT_THAT(busy[0].Send("123456789"), IsOk());
  EXPECT_THAT(busy[0].ReceiveResponse().value(), HasSubstr("all there"));
}

TEST_F(ServerLimitsTest, MemoryForBodiesIsShared) {
  ServerOptions options;
  options.limits.buffer_budget = 256 << 10;
  std::mutex mutex;
  size_t largest = 0;
  handler_ = std::make_unique<FunctionHandler>([&](const RequestContext&) -> Accept {
    return std::make_unique<FunctionSink>(
        [&](std::span<const uint8_t> bytes) {
          const std::lock_guard lock(mutex);
          largest = std::max(largest, bytes.size());
          return base::OkStatus();
        },
        [](const Headers&, Responder responder) {
          std::move(responder).Send(Response{200, {}, "done"});
        });
  });
  server_ = Server::Start(options, *handler_).value();
  RawConnection connection = Connect();
  ASSERT_THAT(connection.Send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 8388608\r\n\r\n" +
                              std::string(8 << 20, 'x')),
              IsOk());
  EXPECT_THAT(connection.ReceiveResponse().value(), HasSubstr("done"));
  EXPECT_LE(largest, size_t{128} << 10);
}

TEST_F(ServerLimitsTest, AFileThatShrinksWhileItIsSentEndsTheConnection) {
  base::TemporaryDirectory folder;
  ASSERT_THAT(base::WriteFileAtomically(folder / "f", std::string(1 << 20, 'x')), IsOk());
  handler_ = std::make_unique<FunctionHandler>([&](const RequestContext&) -> Accept {
    FileBody file = FileBody::Open(folder / "f").value();
    file.length *= 2;  // as if half had gone
    return Response{200, {}, std::move(file)};
  });
  server_ = Server::Start({}, *handler_).value();
  RawConnection connection = Connect();
  ASSERT_THAT(connection.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), IsOk());
  const base::Result<std::string> all = connection.ReceiveAll();
  EXPECT_LT(all.value_or("").size(), size_t{1100} << 10);
}

}  // namespace
}  // namespace fl::transport
