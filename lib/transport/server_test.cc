/// The server as a peer sees it on the wire, without TLS so that every byte is the test's.

#include "transport/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <mutex>
#include <vector>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"
#include "transport/serve_file.h"
#include "transport/testing/function_handler.h"
#include "transport/testing/raw_connection.h"

namespace fl::transport {
namespace {

using base::Code;
using base::IsOk;
using base::StatusIs;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kHost = "Host: h\r\n";

class ServerTest : public ::testing::Test {
 protected:
  void Serve(std::function<Accept(const RequestContext&)> function, ServerOptions options = {}) {
    handler_ = std::make_unique<FunctionHandler>(std::move(function));
    options.on_request_done = [this](const RequestRecord& record) {
      const std::lock_guard lock(mutex_);
      records_.push_back(record);
    };
    base::Result<std::unique_ptr<Server>> server = Server::Start(std::move(options), *handler_);
    ASSERT_THAT(server, IsOk());
    server_ = std::move(server).value();
  }
  /// Answers with the method, the path, the body and the trailers.
  void ServeEcho(ServerOptions options = {}) {
    Serve(
        [](const RequestContext& context) -> Accept {
          auto text = std::make_shared<std::string>(context.head.method + " " +
                                                    context.head.target.path + " [");
          return std::make_unique<FunctionSink>(
              [text](std::span<const uint8_t> bytes) {
                text->append(bytes.begin(), bytes.end());
                return base::OkStatus();
              },
              [text](const Headers& trailers, Responder responder) {
                *text += "]";
                for (const auto& [name, value] : trailers) *text += " " + name + "=" + value;
                std::move(responder).Send(Response{200, {}, *text});
              });
        },
        std::move(options));
  }
  RawConnection Connect() { return RawConnection::Open(server_->port()).value(); }
  std::string Ask(std::string_view bytes) {
    RawConnection connection = Connect();
    EXPECT_THAT(connection.Send(bytes), IsOk());
    return connection.ReceiveResponse().value_or("nothing");
  }
  static std::string Get(std::string_view path) {
    return "GET " + std::string(path) + " HTTP/1.1\r\n" + std::string(kHost) + "\r\n";
  }

  std::mutex mutex_;
  std::vector<RequestRecord> records_;
  std::unique_ptr<FunctionHandler> handler_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, KeepsAConnectionForManyRequests) {
  ServeEcho();
  RawConnection connection = Connect();
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(connection.Send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"),
                IsOk());
    ASSERT_OK_AND_ASSIGN(const std::string answer, connection.ReceiveResponse());
    EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("POST /a [hi]"),
                              HasSubstr("Connection: keep-alive\r\n"), HasSubstr("Date: ")));
  }
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  ServeEcho();
  RawConnection connection = Connect();
  std::string all;
  for (int i = 0; i < 20; ++i) {
    all += "\r\nPOST /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\n" +
           (i % 2 == 0 ? "Content-Length: 3\r\n\r\nabc"
                       : "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  }
  ASSERT_THAT(connection.Send(all), IsOk());
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(const std::string answer, connection.ReceiveResponse());
    EXPECT_THAT(answer, EndsWith("POST /" + std::to_string(i) + " [abc]"));
  }
}

TEST_F(ServerTest, ClosesWhereThePeerOrTheVersionWants) {
  ServeEcho();
  for (const std::string request :
       {"GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "GET /x HTTP/1.0\r\n\r\n"}) {
    RawConnection connection = Connect();
    ASSERT_THAT(connection.Send(request), IsOk());
    ASSERT_OK_AND_ASSIGN(const std::string all, connection.ReceiveAll());
    EXPECT_THAT(all, AllOf(HasSubstr("Connection: close\r\n"), EndsWith("GET /x []")));
  }
  RawConnection connection = Connect();
  ASSERT_THAT(connection.Send("GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), IsOk());
  EXPECT_THAT(connection.ReceiveResponse().value(), HasSubstr("keep-alive"));
  ASSERT_THAT(connection.Send(Get("/y")), IsOk());
  EXPECT_THAT(connection.ReceiveResponse().value(), EndsWith("GET /y []"));
}

TEST_F(ServerTest, RefusesWhatItCannotBeSureOf) {
  ServeEcho();
  const std::string body = "\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
  const struct {
    std::string request;
    int status;
  } cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked" + body, 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5" + body, 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 5" + body, 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6" + body, 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 5" + body, 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +5" + body, 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -5" + body, 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x5" + body, 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length:" + body, 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551616" + body, 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip" + body, 501},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked" + body, 501},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked" + body, 501},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, identity" + body, 501},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked" +
           body,
       400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked" +
           body,
       400},
      {"POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked" + body, 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length : 5" + body, 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nExpect: a-miracle\r\nContent-Length: 5" + body, 417},
      {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505},
      {"GET / HTTP/1.2\r\nHost: h\r\n\r\n", 505},
      {"GET /\r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /a\tb HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /../etc/passwd HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /a//b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"G@T / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: h\n\n\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\nHost: h\r\nA: b\x01\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n", 400},
      {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + "\r\n\r\n", 400},
      {std::string(3, '\0') + "\r\n\r\n", 400},
  };
  for (const auto& [request, status] : cases) {
    RawConnection connection = Connect();
    ASSERT_THAT(connection.Send(request), IsOk());
    const std::string all = connection.ReceiveAll().value_or("no end");
    EXPECT_THAT(all, AllOf(StartsWith("HTTP/1.1 " + std::to_string(status) + " "),
                           HasSubstr("{\"error\":{\"code\":"), HasSubstr("Connection: close"),
                           Not(HasSubstr("smuggled"))))
        << request;
  }
}

TEST_F(ServerTest, HeadersHaveLimits) {
  ServerOptions options;
  options.limits.max_header_bytes = 8192;
  options.limits.max_header_fields = 20;
  ServeEcho(options);
  const auto with_fields = [](int count) {
    std::string request = "GET / HTTP/1.1\r\nHost: h\r\n";
    for (int i = 1; i < count; ++i) request += "F" + std::to_string(i) + ": v\r\n";
    return request + "\r\n";
  };
  EXPECT_THAT(Ask(with_fields(20)), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask(with_fields(21)), AllOf(StartsWith("HTTP/1.1 431"), HasSubstr("at most 20")));
  const auto with_bytes = [](size_t bytes) {
    std::string request = "GET / HTTP/1.1\r\nHost: h\r\nA: ";
    request += std::string(bytes - request.size() - 4, 'a');
    return request + "\r\n\r\n";
  };
  EXPECT_THAT(Ask(with_bytes(8000)), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask(with_bytes(9000)), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Ask(with_bytes(1 << 20)), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Ask("GET /" + std::string(1 << 20, 'a')), StartsWith("HTTP/1.1 431"));
}

TEST_F(ServerTest, AHeadMayComeByteByByte) {
  ServeEcho();
  RawConnection connection = Connect();
  const std::string request =
      "POST /slow HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;ext=\"a\"\r\nabc\r\n0A\r\n0123456789\r\n0\r\nRepr-Digest: sha-256=:x:\r\n\r\n";
  for (const char c : request) ASSERT_THAT(connection.Send({&c, 1}), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string answer, connection.ReceiveResponse());
  EXPECT_THAT(answer, EndsWith("POST /slow [abc0123456789] Repr-Digest=sha-256=:x:"));
}

TEST_F(ServerTest, BadChunksAreRefused) {
  ServeEcho();
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string body :
       {"x\r\n", "-1\r\n", "3\r\nabcd\r\n0\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n", "\r\n",
        "10000000000000000\r\n", "3\nabc\r\n0\r\n\r\n", "0\r\nContent-Length: 5\r\n\r\n",
        "0\r\nTransfer-Encoding: chunked\r\n\r\n", "0\r\nHost: other\r\n\r\n",
        "0\r\nAuthorization: b\r\n\r\n", "0\r\nno colon\r\n\r\n"}) {
    EXPECT_THAT(Ask(head + body), AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("Connection: close")))
        << body;
  }
  EXPECT_THAT(Ask(head + "0\r\nA: " + std::string(1 << 20, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Ask(head + "3;" + std::string(1 << 20, 'a') + "\r\nabc\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 431"));
}

TEST_F(ServerTest, ContinueIsSaidOnlyAfterTheHandlerAccepted) {
  std::latch may_decide(1);
  Serve([&](const RequestContext& context) -> Accept {
    EXPECT_TRUE(context.head.expects_continue);
    EXPECT_EQ(context.head.content_length, 5u);
    may_decide.wait();
    if (context.head.target.path == "/no") {
      return ErrorResponse(base::FailedPrecondition("the round is over"));
    }
    return Buffered{10, [](std::string body, Responder responder) {
                      std::move(responder).Send(Response{200, {}, body});
                    }};
  });
  const auto head = [](std::string_view path) {
    return "PUT " + std::string(path) +
           " HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n";
  };
  RawConnection accepted = Connect();
  RawConnection refused = Connect();
  ASSERT_THAT(accepted.Send(head("/yes")), IsOk());
  ASSERT_THAT(refused.Send(head("/no")), IsOk());
  may_decide.count_down();
  EXPECT_EQ(accepted.ReceiveResponse().value(), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_THAT(accepted.Send("hello"), IsOk());
  EXPECT_THAT(accepted.ReceiveResponse().value(), EndsWith("\r\n\r\nhello"));
  EXPECT_THAT(refused.ReceiveAll().value(),
              AllOf(StartsWith("HTTP/1.1 409"), HasSubstr("the round is over"),
                    HasSubstr("Connection: close")));
}

TEST_F(ServerTest, ARefusalReachesAPeerThatIsStillSending) {
  std::atomic<int> writes = 0;
  Serve([&](const RequestContext& context) -> Accept {
    if (context.head.target.path == "/head") return ErrorResponse(base::Unauthenticated("who?"));
    return std::make_unique<FunctionSink>(
        [&](std::span<const uint8_t>) {
          return ++writes > 2 ? base::ResourceExhausted("the disk is full") : base::OkStatus();
        },
        [](const Headers&, Responder) {});
  });
  for (const auto& [path, status] :
       {std::pair("/head", "HTTP/1.1 401"), std::pair("/body", "HTTP/1.1 507")}) {
    for (const std::string_view framing :
         {"Content-Length: 8388608", "Transfer-Encoding: chunked"}) {
      writes = 0;
      RawConnection connection = Connect();
      ASSERT_THAT(connection.Send("PUT " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n" +
                                  std::string(framing) + "\r\n\r\n"),
                  IsOk());
      // All of it, before a byte of the answer is read: none of this may be lost to a reset.
      std::string body(8 << 20, 'x');
      if (framing[0] == 'T') body = "800000\r\n" + body + "\r\n0\r\n\r\n";
      ASSERT_THAT(connection.Send(body), IsOk());
      connection.FinishSending();
      EXPECT_THAT(connection.ReceiveAll().value(), StartsWith(status));
    }
  }
}

TEST_F(ServerTest, AfterASmallRefusedBodyTheConnectionGoesOn) {
  Serve([](const RequestContext& context) -> Accept {
    if (context.head.method == "PUT") return ErrorResponse(base::NotFound("no such job"));
    return Response{200, {}, "fine"};
  });
  RawConnection connection = Connect();
  ASSERT_THAT(connection.Send("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 30000\r\n\r\n" +
                              std::string(30000, 'x') + Get("/b")),
              IsOk());
  EXPECT_THAT(connection.ReceiveResponse().value(), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(connection.ReceiveResponse().value(), EndsWith("\r\n\r\nfine"));
}

TEST_F(ServerTest, BufferedBodiesHaveALimit) {
  Serve([](const RequestContext&) -> Accept {
    return Buffered{10, [](std::string body, Responder responder) {
                      std::move(responder).Send(Response{200, {}, body});
                    }};
  });
  const std::string put = "PUT /a HTTP/1.1\r\nHost: h\r\n";
  EXPECT_THAT(Ask(put + "Content-Length: 10\r\n\r\n0123456789"), EndsWith("\r\n\r\n0123456789"));
  EXPECT_THAT(Ask(put + "Content-Length: 11\r\n\r\n0123456789a"),
              AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("longer than the 10 bytes")));
  EXPECT_THAT(
      Ask(put + "Transfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n6\r\n678901\r\n0\r\n\r\n"),
      StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(Ask(put + "Content-Length: 18446744073709551615\r\n\r\n0"),
              StartsWith("HTTP/1.1 413"));
}

TEST_F(ServerTest, HeadGetsNoBody) {
  base::TemporaryDirectory folder;
  ASSERT_THAT(base::WriteFileAtomically(folder / "f", "0123456789"), IsOk());
  Serve([&](const RequestContext& context) -> Accept {
    return ServeFile(context.head, FileBody::Open(folder / "f").value(), {});
  });
  RawConnection connection = Connect();
  ASSERT_THAT(connection.Send("HEAD /f HTTP/1.1\r\nHost: h\r\n\r\n" + Get("/f")), IsOk());
  std::string all;
  while (all.find("0123456789") == std::string::npos) all += connection.Receive().value();
  EXPECT_THAT(all, StartsWith("HTTP/1.1 200 OK\r\n"));
  const size_t second = all.find("\r\n\r\nHTTP/1.1 200 OK\r\n");
  ASSERT_NE(second, std::string::npos);
  EXPECT_THAT(all.substr(0, second), HasSubstr("Content-Length: 10"));
}

TEST_F(ServerTest, StatusesWithoutABodyHaveNone) {
  Serve([&](const RequestContext& context) -> Accept {
    return Response{context.head.target.path == "/204" ? 204 : 304, {}, "not to be sent"};
  });
  RawConnection connection = Connect();
  for (const std::string path : {"/204", "/304"}) {
    ASSERT_THAT(connection.Send(Get(path)), IsOk());
    const std::string answer = connection.ReceiveResponse().value();
    EXPECT_THAT(answer, AllOf(EndsWith("\r\n\r\n"), Not(HasSubstr("Content-Length"))));
  }
}

TEST_F(ServerTest, AnExceptionOrAForgottenResponderIsA500) {
  Serve([](const RequestContext& context) -> Accept {
    const std::string path = context.head.target.path;
    if (path == "/request") throw std::runtime_error("secret");
    if (path == "/forgotten") return Buffered{9, [](std::string, Responder) {}};
    return std::make_unique<FunctionSink>(
        [path](std::span<const uint8_t>) -> base::Status {
          if (path == "/write") throw std::bad_alloc();
          return base::OkStatus();
        },
        [path](const Headers&, Responder) {
          if (path == "/finish") throw 7;
        });
  });
  for (const std::string path : {"/request", "/forgotten", "/write", "/finish"}) {
    EXPECT_THAT(Ask("PUT " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"),
                AllOf(StartsWith("HTTP/1.1 500"), Not(HasSubstr("secret"))))
        << path;
  }
}

TEST_F(ServerTest, AValueCannotForgeFields) {
  Serve([](const RequestContext&) -> Accept {
    return Response{200,
                    {{"Good", "yes"},
                     {"Bad", "a\r\nForged: 1"},
                     {"Content-Length", "99"},
                     {"Transfer-Encoding", "chunked"}},
                    "body"};
  });
  const std::string answer = Ask(Get("/"));
  EXPECT_THAT(answer, AllOf(HasSubstr("Good: yes\r\n"), Not(HasSubstr("Forged")),
                            HasSubstr("Content-Length: 4\r\n"), Not(HasSubstr("Transfer"))));
}

TEST_F(ServerTest, ABlockedHandlerDoesNotBlockOthers) {
  std::latch release(1);
  ServerOptions options;
  options.io_threads = 1;
  options.handler_threads = 2;
  Serve(
      [&](const RequestContext& context) -> Accept {
        if (context.head.method != "PUT") return Response{200, {}, "quick"};
        return std::make_unique<FunctionSink>(
            [&](std::span<const uint8_t>) {
              release.wait();
              return base::OkStatus();
            },
            [](const Headers&, Responder responder) {
              std::move(responder).Send(Response{200, {}, "slow"});
            });
      },
      options);
  RawConnection slow = Connect();
  ASSERT_THAT(slow.Send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"), IsOk());
  for (int i = 0; i < 20; ++i) EXPECT_THAT(Ask(Get("/")), EndsWith("quick"));
  release.count_down();
  EXPECT_THAT(slow.ReceiveResponse().value(), EndsWith("slow"));
}

TEST_F(ServerTest, ALongPollIsAnsweredLaterFromAnotherThread) {
  std::promise<Responder> parked;
  Serve([&](const RequestContext&) -> Accept {
    return Buffered{
        0, [&](std::string, Responder responder) { parked.set_value(std::move(responder)); }};
  });
  RawConnection connection = Connect();
  ASSERT_THAT(connection.Send(Get("/task?wait=30")), IsOk());
  Responder responder = parked.get_future().get();
  EXPECT_FALSE(responder.disconnected());
  std::move(responder).Send(Response{200, {}, "a task"});
  EXPECT_THAT(connection.ReceiveResponse().value(), EndsWith("a task"));
}

TEST_F(ServerTest, ALongPollLearnsThatItsPeerHasGone) {
  for (const bool resets : {false, true}) {
    std::promise<Responder> parked;
    Serve([&](const RequestContext&) -> Accept {
      return Buffered{
          0, [&](std::string, Responder responder) { parked.set_value(std::move(responder)); }};
    });
    RawConnection connection = Connect();
    ASSERT_THAT(connection.Send(Get("/task")), IsOk());
    Responder responder = parked.get_future().get();
    std::promise<void> gone;
    responder.OnDisconnect([&] { gone.set_value(); });
    if (resets) {
      connection.Close();
    } else {
      connection.FinishSending();
    }
    gone.get_future().get();
    EXPECT_TRUE(responder.disconnected());
    int called_at_once = 0;
    responder.OnDisconnect([&] { ++called_at_once; });
    EXPECT_EQ(called_at_once, 1);
    std::move(responder).Send(Response{200, {}, "into the void"});
    server_.reset();
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(records_.back().status, 0);
  }
}

TEST_F(ServerTest, ABodyCutShortIsToldToTheSink) {
  for (const std::string framing : {"Content-Length: 100", "Transfer-Encoding: chunked"}) {
    std::promise<void> written;
    std::promise<void> aborted;
    Serve([&](const RequestContext&) -> Accept {
      return std::make_unique<FunctionSink>(
          [&](std::span<const uint8_t>) {
            written.set_value();
            return base::OkStatus();
          },
          [](const Headers&, Responder) { ADD_FAILURE() << "Finish after a cut"; },
          [&] { aborted.set_value(); });
    });
    RawConnection connection = Connect();
    ASSERT_THAT(connection.Send("PUT /a HTTP/1.1\r\nHost: h\r\n" + framing + "\r\n\r\n5\r\nab"),
                IsOk());
    written.get_future().get();
    connection.Close();
    aborted.get_future().get();
  }
}

TEST_F(ServerTest, RecordsWhatHappened) {
  ServeEcho();
  EXPECT_THAT(Ask("PUT /a?b=c HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
                  "hello"),
              StartsWith("HTTP/1.1 200"));
  server_.reset();
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_EQ(records_[0].method, "PUT");
  EXPECT_EQ(records_[0].path, "/a");
  EXPECT_EQ(records_[0].status, 200);
  EXPECT_EQ(records_[0].bytes_received, 5u);
  EXPECT_GT(records_[0].bytes_sent, 14u);
  EXPECT_THAT(records_[0].peer, StartsWith("127.0.0.1:"));
}

TEST_F(ServerTest, StopLetsAnswersGoOutAndClosesTheRest) {
  std::promise<Responder> parked;
  Serve([&](const RequestContext& context) -> Accept {
    if (context.head.target.path == "/quick") return Response{200, {}, "quick"};
    return Buffered{
        0, [&](std::string, Responder responder) { parked.set_value(std::move(responder)); }};
  });
  RawConnection idle = Connect();
  ASSERT_THAT(idle.Send(Get("/quick")), IsOk());
  ASSERT_THAT(idle.ReceiveResponse(), IsOk());
  RawConnection busy = Connect();
  ASSERT_THAT(busy.Send(Get("/slow")), IsOk());
  Responder responder = parked.get_future().get();
  auto stopped = std::async(std::launch::async, [&] { server_->Stop(std::chrono::minutes(1)); });
  EXPECT_EQ(idle.ReceiveAll().value(), "");  // closed though the other goes on
  std::move(responder).Send(Response{200, {}, "late but whole"});
  EXPECT_THAT(busy.ReceiveAll().value(),
              AllOf(EndsWith("late but whole"), HasSubstr("Connection: close")));
  busy.Close();
  stopped.get();
  EXPECT_EQ(server_->connections(), 0);
  EXPECT_THAT(RawConnection::Open(server_->port()), Not(IsOk()));
}

TEST_F(ServerTest, StopWithoutGraceEndsLongPollsAndTheirRespondersStayHarmless) {
  std::promise<Responder> parked;
  Serve([&](const RequestContext&) -> Accept {
    return Buffered{
        0, [&](std::string, Responder responder) { parked.set_value(std::move(responder)); }};
  });
  RawConnection connection = Connect();
  ASSERT_THAT(connection.Send(Get("/task")), IsOk());
  Responder responder = parked.get_future().get();
  std::promise<void> gone;
  responder.OnDisconnect([&] { gone.set_value(); });
  server_->Stop(base::Duration(0));
  gone.get_future().get();
  server_.reset();
  EXPECT_TRUE(responder.disconnected());
  std::move(responder).Send(Response{200, {}, "too late"});
}

TEST_F(ServerTest, AddressesThatCannotBeServedAreExplained) {
  ServeEcho();
  ServerOptions options;
  options.port = server_->port();
  EXPECT_THAT(Server::Start(options, *handler_),
              StatusIs(Code::kUnavailable, HasSubstr("port " + std::to_string(options.port))));
  options.port = 0;
  options.address = "localhost";
  EXPECT_THAT(Server::Start(options, *handler_),
              StatusIs(Code::kInvalidArgument, HasSubstr("\"localhost\" port 0")));
  options.address = "203.0.113.7";
  EXPECT_THAT(Server::Start(options, *handler_), Not(IsOk()));
  options.address = "::1";
  const auto six = Server::Start(options, *handler_);
  EXPECT_THAT(six, IsOk());
}

}  // namespace
}  // namespace fl::transport
