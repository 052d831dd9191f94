#include "transport/testing/http_client_contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <latch>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/digest.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"
#include "transport/certificates.h"
#include "transport/server.h"
#include "transport/testing/cut_proxy.h"
#include "transport/testing/function_handler.h"

namespace fl::transport {
namespace {

using base::Code;
using base::IsOk;
using base::StatusIs;
using ::testing::HasSubstr;

/// A server over TLS, and options for a client that trusts it.
class Peer {
 public:
  explicit Peer(std::function<Accept(const RequestContext&)> function)
      : handler_(std::move(function)),
        authority_(CertificateAuthority::Create("contract", base::Clock::System()).value()) {
    const CertificateAndKey own =
        authority_.IssueServer({"127.0.0.1"}, base::Clock::System()).value();
    ServerOptions options;
    options.tls = ServerTls{own.certificate_pem, own.key_pem, "", false};
    server_ = Server::Start(options, handler_).value();
  }
  ClientOptions Trusting() const {
    ClientOptions options;
    options.ca_pem = authority_.certificate_pem();
    return options;
  }
  int port() const { return server_->port(); }
  std::string Url(const std::string& path, int port = 0) const {
    return "https://127.0.0.1:" + std::to_string(port == 0 ? server_->port() : port) + path;
  }
  Server& server() { return *server_; }

 private:
  FunctionHandler handler_;
  CertificateAuthority authority_;
  std::unique_ptr<Server> server_;
};

ClientRequest Get(const std::string& url) {
  ClientRequest request;
  request.url = url;
  return request;
}

/// Method, path, one header, and the body (with its trailers), as text.
Accept Mirror(const RequestContext& context) {
  auto text =
      std::make_shared<std::string>(context.head.method + " " + context.head.target.path + " " +
                                    std::string(context.head.headers.GetOr("Ask", "-")) + " " +
                                    (context.head.content_length ? "length " : "chunks "));
  return std::make_unique<FunctionSink>(
      [text](std::span<const uint8_t> bytes) {
        text->append(bytes.begin(), bytes.end());
        return base::OkStatus();
      },
      [text](const Headers& trailers, Responder responder) {
        for (const auto& [name, value] : trailers) *text += " " + name + "=" + value;
        std::move(responder).Send(Response{200, {{"Reply", "yes"}}, *text});
      });
}

void SendsWhatItIsGiven(const HttpClientFactory& make) {
  base::TemporaryDirectory folder;
  ASSERT_THAT(base::WriteFileAtomically(folder / "f", "0123456789"), IsOk());
  Peer peer(Mirror);
  const auto client = make(peer.Trusting());
  size_t given = 0;
  const auto three_reads = [&given](std::span<uint8_t> out) -> base::Result<size_t> {
    if (given == 3) return size_t{0};
    out[0] = static_cast<uint8_t>('a' + given++);
    return size_t{1};
  };
  const auto rewind = [&given] {
    given = 0;
    return base::OkStatus();
  };
  const struct {
    std::string method;
    RequestBody body;
    std::string expected;
  } cases[] = {
      {"GET", std::monostate(), "GET /p hello length "},
      {"DELETE", std::monostate(), "DELETE /p hello length "},
      {"POST", std::monostate(), "POST /p hello length "},
      {"POST", std::string(), "POST /p hello length "},
      {"PUT", std::string("body"), "PUT /p hello length body"},
      {"PUT", FileUpload{folder / "f", 0}, "PUT /p hello length 0123456789"},
      {"PATCH", FileUpload{folder / "f", 7}, "PATCH /p hello length 789"},
      {"PUT", FileUpload{folder / "f", 10}, "PUT /p hello length "},
      {"PUT", StreamUpload{three_reads, 3, rewind, nullptr}, "PUT /p hello length abc"},
      {"POST",
       StreamUpload{three_reads, std::nullopt, rewind,
                    [] { return Headers{{"Repr-Digest", "sha-256=:x:"}}; }},
       "POST /p hello chunks abc Repr-Digest=sha-256=:x:"},
  };
  for (const auto& [method, body, expected] : cases) {
    for (const bool expect_continue : {false, true}) {
      given = 0;
      ClientRequest request = Get(peer.Url("/p"));
      request.method = method;
      request.headers = {{"Ask", "hello"}, {"Empty", ""}};
      request.body = body;
      request.expect_continue = expect_continue;
      const auto response = client->Send(request);
      ASSERT_THAT(response, IsOk()) << method;
      EXPECT_EQ(response->body, expected);
      EXPECT_EQ(response->headers.Get("reply"), "yes");
    }
  }
}

void AnyStatusIsASuccess(const HttpClientFactory& make) {
  Peer peer([](const RequestContext& context) -> Accept {
    if (context.head.target.path == "/303") return Response{303, {{"Location", "/elsewhere"}}, ""};
    return ErrorResponse(base::AlreadyExists("other bytes came first", "look"));
  });
  const auto client = make(peer.Trusting());
  const auto response = client->Send(Get(peer.Url("/x")));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->status, 409);
  EXPECT_THAT(response->ToStatus(), StatusIs(Code::kAlreadyExists, "other bytes came first"));
  EXPECT_EQ(client->Send(Get(peer.Url("/303")))->status, 303);
}

class Collector final : public BodyWriter {
 public:
  base::Status Start(int http_status, const Headers& headers) override {
    ++starts;
    status = http_status;
    length = headers.GetNumber("Content-Length").value_or(0);
    hash = base::Sha256();
    bytes = 0;
    return at_start;
  }
  base::Status Write(std::span<const uint8_t> piece) override {
    hash.Update(piece);
    bytes += piece.size();
    if (bytes > fail_after) return base::ResourceExhausted("no room");
    return base::OkStatus();
  }
  base::Status at_start;
  uint64_t fail_after = UINT64_MAX;
  int starts = 0;
  int status = 0;
  uint64_t length = 0;
  uint64_t bytes = 0;
  base::Sha256 hash;
};

void WritersTakeSuccessfulBodiesOnly(const HttpClientFactory& make) {
  const std::string body(3 << 20, 'z');
  Peer peer([&](const RequestContext& context) -> Accept {
    if (context.head.target.path == "/empty") return Response{200, {}, ""};
    if (context.head.target.path == "/no") return ErrorResponse(base::NotFound("no blob"));
    return Response{206, {}, body};
  });
  const auto client = make(peer.Trusting());
  Collector collector;
  ClientRequest request = Get(peer.Url("/yes"));
  request.writer = &collector;
  request.response_limit = 10;  // not for writers
  ASSERT_THAT(client->Send(request), IsOk());
  EXPECT_EQ(collector.status, 206);
  EXPECT_EQ(collector.length, body.size());
  EXPECT_EQ(std::move(collector.hash).Finish(), base::Digest::Of(body));

  request.url = peer.Url("/empty");
  ASSERT_THAT(client->Send(request), IsOk());
  EXPECT_EQ(collector.starts, 2);
  EXPECT_EQ(collector.bytes, 0u);

  request.url = peer.Url("/no");
  request.response_limit = 1000;
  const auto refused = client->Send(request);
  ASSERT_THAT(refused, IsOk());
  EXPECT_EQ(collector.starts, 2);
  EXPECT_THAT(refused->ToStatus(), StatusIs(Code::kNotFound, "no blob"));

  request.url = peer.Url("/yes");
  collector.fail_after = 1 << 20;
  EXPECT_THAT(client->Send(request), StatusIs(Code::kResourceExhausted, "no room"));
  collector.at_start = base::FailedPrecondition("not a range");
  EXPECT_THAT(client->Send(request), StatusIs(Code::kFailedPrecondition, "not a range"));
}

void AnswersInMemoryHaveALimit(const HttpClientFactory& make) {
  Peer peer([](const RequestContext&) -> Accept { return Response{200, {}, "0123456789"}; });
  const auto client = make(peer.Trusting());
  ClientRequest request = Get(peer.Url("/"));
  request.response_limit = 10;
  EXPECT_THAT(client->Send(request), IsOk());
  request.response_limit = 9;
  EXPECT_THAT(client->Send(request), StatusIs(Code::kOutOfRange, HasSubstr("longer than 9 bytes")));
}

void ErrorsOfBodiesAreReturned(const HttpClientFactory& make) {
  base::TemporaryDirectory folder;
  Peer peer(Mirror);
  const auto client = make(peer.Trusting());
  ClientRequest request = Get(peer.Url("/"));
  request.method = "POST";  // not repeated by a client that retries
  request.body = FileUpload{folder / "none", 0};
  EXPECT_THAT(client->Send(request), StatusIs(Code::kNotFound, HasSubstr("none")));
  request.body = StreamUpload{[](std::span<uint8_t>) -> base::Result<size_t> {
                                return base::DataLoss("the file is damaged");
                              },
                              std::nullopt, nullptr, nullptr};
  EXPECT_THAT(client->Send(request), StatusIs(Code::kDataLoss, "the file is damaged"));
  request.body = StreamUpload{[](std::span<uint8_t>) -> base::Result<size_t> { return size_t{0}; },
                              5, nullptr, nullptr};
  EXPECT_THAT(client->Send(request), StatusIs(Code::kInternal, HasSubstr("length")));
}

void BadRequestsAreToldBeforeTheyAreSent(const HttpClientFactory& make) {
  Peer peer(Mirror);
  const auto client = make(peer.Trusting());
  for (const std::string url : {"", "127.0.0.1", "ftp://127.0.0.1/", "https://", "https://a b/"}) {
    EXPECT_THAT(client->Send(Get(url)), StatusIs(Code::kInvalidArgument, HasSubstr(""))) << url;
  }
  EXPECT_THAT(client->Send(Get("http://127.0.0.1:1/")),
              StatusIs(Code::kInvalidArgument, HasSubstr("not encrypted")));
  ClientRequest request = Get(peer.Url("/"));
  request.headers = {{"A", "b\r\nForged: c"}};
  EXPECT_THAT(client->Send(request), StatusIs(Code::kInvalidArgument, HasSubstr("line break")));
  request.headers = {};
  request.method = "get /x HTTP/1.1\r\n";
  EXPECT_THAT(client->Send(request), StatusIs(Code::kInvalidArgument, HasSubstr("no HTTP method")));
}

void UnreachableServersAreUnavailable(const HttpClientFactory& make) {
  auto peer = std::make_unique<Peer>(Mirror);
  const auto client = make(peer->Trusting());
  const std::string url = peer->Url("/");
  EXPECT_THAT(client->Send(Get(url)), IsOk());
  peer.reset();
  EXPECT_THAT(client->Send(Get(url)), StatusIs(Code::kUnavailable, HasSubstr("127.0.0.1")));
  EXPECT_THAT(client->Send(Get("https://nowhere.invalid/")),
              StatusIs(Code::kUnavailable, HasSubstr("nowhere.invalid")));
}

void ABrokenAnswerIsUnavailable(const HttpClientFactory& make) {
  Peer peer(
      [](const RequestContext&) -> Accept { return Response{200, {}, std::string(4 << 20, 'x')}; });
  const auto proxy = CutProxy::Start(peer.port()).value();
  const auto client = make(peer.Trusting());
  for (const bool reset : {false, true}) {
    CutProxy::Fault fault;
    fault.cut_after_received = 1 << 20;
    fault.reset = reset;
    proxy->FailAll(fault);
    EXPECT_THAT(client->Send(Get(peer.Url("/", proxy->port()))),
                StatusIs(Code::kUnavailable, HasSubstr("")));
  }
  proxy->Heal();
  EXPECT_THAT(client->Send(Get(peer.Url("/", proxy->port()))), IsOk());
}

void CertificatesAreChecked(const HttpClientFactory& make) {
  Peer peer(Mirror);
  Peer other(Mirror);
  EXPECT_THAT(make(other.Trusting())->Send(Get(peer.Url("/"))),
              StatusIs(Code::kPermissionDenied, HasSubstr("not trusted")));
  ClientOptions system = peer.Trusting();
  system.ca_pem.clear();
  EXPECT_THAT(make(system)->Send(Get(peer.Url("/"))),
              StatusIs(Code::kPermissionDenied, HasSubstr("not trusted")));
  // The right authority, the wrong name.
  const std::string by_name = "https://localhost:" + std::to_string(peer.port()) + "/";
  const auto wrong_name = make(peer.Trusting())->Send(Get(by_name));
  EXPECT_THAT(wrong_name, StatusIs(Code::kPermissionDenied, HasSubstr("localhost")));
  ClientOptions insecure = other.Trusting();
  insecure.verify_server = false;
  EXPECT_THAT(make(insecure)->Send(Get(peer.Url("/"))), IsOk());
}

void ConnectionsAreKeptAndShareKeyingMaterial(const HttpClientFactory& make) {
  std::mutex mutex;
  std::vector<std::string> exporters;
  std::set<std::string> peers;
  Peer peer([&](const RequestContext& context) -> Accept {
    const std::lock_guard lock(mutex);
    exporters.push_back(context.tls_exporter);
    peers.insert(context.head.peer);
    return Buffered{99, [](std::string, Responder responder) {
                      std::move(responder).Send(Response{401, {}, "challenge"});
                    }};
  });
  const auto client = make(peer.Trusting());
  std::vector<std::string> seen;
  for (int i = 0; i < 4; ++i) {
    ClientRequest request = Get(peer.Url("/v1/agents"));
    request.method = i % 2 == 0 ? "POST" : "GET";
    if (i % 2 == 0) request.body = std::string("{}");
    seen.push_back(client->Send(request)->tls_exporter);
  }
  EXPECT_EQ(peers.size(), 1u);
  EXPECT_EQ(seen, exporters);
  EXPECT_EQ(seen[0].size(), kTlsExporterBytes);
  EXPECT_EQ(seen[0], seen[3]);
  const std::string of_another = make(peer.Trusting())->Send(Get(peer.Url("/")))->tls_exporter;
  EXPECT_NE(of_another, seen[0]);
  EXPECT_EQ(of_another, exporters.back());
}

void ManyThreadsSendAtOnce(const HttpClientFactory& make) {
  constexpr int kThreads = 4;
  std::latch all_there(kThreads);
  Peer peer([&](const RequestContext&) -> Accept {
    return Buffered{0, [&](std::string, Responder responder) {
                      all_there.arrive_and_wait();
                      std::move(responder).Send(Response{200, {}, "together"});
                    }};
  });
  const auto client = make(peer.Trusting());
  std::vector<std::jthread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const auto response = client->Send(Get(peer.Url("/")));
      if (response.ok() && response->body == "together") ++good;
    });
  }
  threads.clear();
  EXPECT_EQ(good, kThreads);
}

/// Parks every request until the end.
class Parking {
 public:
  Accept Park(const RequestContext&) {
    return Buffered{0, [this](std::string, Responder responder) {
                      const std::lock_guard lock(mutex_);
                      parked_.push_back(std::move(responder));
                      if (!told_) arrived_.set_value();
                      told_ = true;
                    }};
  }
  void WaitForOne() { arrived_.get_future().wait(); }

 private:
  std::mutex mutex_;
  std::vector<Responder> parked_;
  std::promise<void> arrived_;
  bool told_ = false;
};

void AStopInterruptsAtOnce(const HttpClientFactory& make) {
  Parking parking;
  Peer peer([&](const RequestContext& context) { return parking.Park(context); });
  const auto client = make(peer.Trusting());
  std::stop_source stop;
  ClientRequest request = Get(peer.Url("/task?wait=30"));
  request.stop = stop.get_token();
  auto sent = std::async(std::launch::async, [&] { return client->Send(request); });
  parking.WaitForOne();
  const auto start = std::chrono::steady_clock::now();
  stop.request_stop();
  EXPECT_THAT(sent.get(), StatusIs(Code::kCancelled, HasSubstr("stopped")));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_THAT(client->Send(request), StatusIs(Code::kCancelled, HasSubstr("")));
  peer.server().Stop(base::Duration(0));
}

void AStopInterruptsAnUpload(const HttpClientFactory& make) {
  Peer peer(Mirror);
  const auto client = make(peer.Trusting());
  std::stop_source stop;
  ClientRequest request = Get(peer.Url("/"));
  request.method = "POST";
  request.stop = stop.get_token();
  uint64_t given = 0;
  request.body = StreamUpload{[&](std::span<uint8_t> out) -> base::Result<size_t> {
                                std::fill(out.begin(), out.end(), uint8_t{1});
                                given += out.size();
                                if (given > (4 << 20)) stop.request_stop();
                                return out.size();
                              },
                              std::nullopt, nullptr, nullptr};
  EXPECT_THAT(client->Send(request), StatusIs(Code::kCancelled, HasSubstr("stopped")));
}

void TimeoutsAreDeadlines(const HttpClientFactory& make) {
  Parking parking;
  Peer peer([&](const RequestContext& context) { return parking.Park(context); });
  const auto client = make(peer.Trusting());
  ClientRequest request = Get(peer.Url("/"));
  request.method = "POST";
  request.timeout = std::chrono::milliseconds(100);
  EXPECT_THAT(client->Send(request), StatusIs(Code::kDeadlineExceeded, HasSubstr("")));
  request.timeout = {};
  request.stall_timeout = std::chrono::milliseconds(100);
  EXPECT_THAT(client->Send(request),
              StatusIs(Code::kDeadlineExceeded, HasSubstr("nothing was heard")));
  const auto proxy = CutProxy::Start(peer.port()).value();
  CutProxy::Fault silence;
  silence.black_hole = true;
  proxy->FailAll(silence);
  request.url = peer.Url("/", proxy->port());
  request.stall_timeout = std::chrono::minutes(1);
  request.connect_timeout = std::chrono::milliseconds(100);
  EXPECT_THAT(client->Send(request), StatusIs(Code::kDeadlineExceeded, HasSubstr("")));
  peer.server().Stop(base::Duration(0));
}

void ALostAnswerIsNotAskedForTwice(const HttpClientFactory& make) {
  std::atomic<int> acted = 0;
  Peer peer([&](const RequestContext& context) -> Accept {
    if (context.head.method == "POST") ++acted;
    return Response{200, {}, "done"};
  });
  const auto proxy = CutProxy::Start(peer.port()).value();
  const auto client = make(peer.Trusting());
  CutProxy::Fault lost;
  lost.drop_response = true;
  proxy->FailAll(lost);
  ClientRequest request = Get(peer.Url("/submit", proxy->port()));
  request.method = "POST";
  EXPECT_THAT(client->Send(request), StatusIs(Code::kUnavailable, HasSubstr("")));
  EXPECT_EQ(acted, 1);
}

void ARefusalArrivesWhileTheBodyIsSent(const HttpClientFactory& make) {
  Peer peer([](const RequestContext&) -> Accept {
    return ErrorResponse(base::FailedPrecondition("the round is over"));
  });
  const auto client = make(peer.Trusting());
  for (const bool expect_continue : {false, true}) {
    ClientRequest request = Get(peer.Url("/"));
    request.method = "PUT";
    request.body = std::string(12 << 20, 'x');
    request.expect_continue = expect_continue;
    const auto response = client->Send(request);
    ASSERT_THAT(response, IsOk());
    EXPECT_THAT(response->ToStatus(), StatusIs(Code::kFailedPrecondition, "the round is over"));
  }
}

constexpr std::array kCases = {
    HttpClientCase{"SendsWhatItIsGiven", SendsWhatItIsGiven},
    HttpClientCase{"AnyStatusIsASuccess", AnyStatusIsASuccess},
    HttpClientCase{"WritersTakeSuccessfulBodiesOnly", WritersTakeSuccessfulBodiesOnly},
    HttpClientCase{"AnswersInMemoryHaveALimit", AnswersInMemoryHaveALimit},
    HttpClientCase{"ErrorsOfBodiesAreReturned", ErrorsOfBodiesAreReturned},
    HttpClientCase{"BadRequestsAreToldBeforeTheyAreSent", BadRequestsAreToldBeforeTheyAreSent},
    HttpClientCase{"UnreachableServersAreUnavailable", UnreachableServersAreUnavailable},
    HttpClientCase{"ABrokenAnswerIsUnavailable", ABrokenAnswerIsUnavailable},
    HttpClientCase{"CertificatesAreChecked", CertificatesAreChecked},
    HttpClientCase{"ConnectionsAreKeptAndShareKeyingMaterial",
                   ConnectionsAreKeptAndShareKeyingMaterial},
    HttpClientCase{"ManyThreadsSendAtOnce", ManyThreadsSendAtOnce},
    HttpClientCase{"AStopInterruptsAtOnce", AStopInterruptsAtOnce},
    HttpClientCase{"AStopInterruptsAnUpload", AStopInterruptsAnUpload},
    HttpClientCase{"TimeoutsAreDeadlines", TimeoutsAreDeadlines},
    HttpClientCase{"ALostAnswerIsNotAskedForTwice", ALostAnswerIsNotAskedForTwice},
    HttpClientCase{"ARefusalArrivesWhileTheBodyIsSent", ARefusalArrivesWhileTheBodyIsSent},
};

}  // namespace

std::span<const HttpClientCase> HttpClientContract() { return kCases; }

}  // namespace fl::transport
