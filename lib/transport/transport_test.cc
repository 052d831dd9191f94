/// Both ends together, over TLS: what agents and aggregators rely on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <mutex>

#include "base/digest.h"
#include "base/subprocess.h"
#include "base/testing/simulated_clock.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"
#include "transport/certificates.h"
#include "transport/client.h"
#include "transport/serve_file.h"
#include "transport/server.h"
#include "transport/testing/cut_proxy.h"
#include "transport/testing/function_handler.h"
#include "transport/testing/raw_connection.h"

namespace fl::transport {
namespace {

class TransportTest : public ::testing::Test {
 protected:
  TransportTest()
      : authority_(CertificateAuthority::Create("test authority", base::Clock::System()).value()) {}

  void Serve(std::function<Accept(const RequestContext&)> function, ServerOptions options = {}) {
    handler_ = std::make_unique<FunctionHandler>(std::move(function));
    const CertificateAndKey own =
        authority_.IssueServer({"localhost", "127.0.0.1"}, base::Clock::System()).value();
    options.tls =
        ServerTls{own.certificate_pem, own.key_pem, client_authority_, require_client_certificate_};
    base::Result<std::unique_ptr<Server>> server = Server::Start(std::move(options), *handler_);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
  }

  std::unique_ptr<HttpClient> Client() {
    ClientOptions options;
    options.ca_pem = authority_.certificate_pem();
    return MakeCurlClient(options).value();
  }

  std::string Url(const std::string& path) {
    return "https://127.0.0.1:" + std::to_string(server_->port()) + path;
  }

  base::Path BigFile(uint64_t bytes) {
    const base::Path path = folder_ / "big";
    std::ofstream out(path, std::ios::binary);
    std::string block(1 << 20, '\0');
    for (uint64_t done = 0; done < bytes; done += block.size()) {
      for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>((done + i * 7) >> 3);
      out.write(block.data(), static_cast<std::streamsize>(std::min(block.size(), bytes - done)));
    }
    return path;
  }

  CertificateAuthority authority_;
  std::string client_authority_;
  bool require_client_certificate_ = false;
  base::TemporaryDirectory folder_;
  std::unique_ptr<FunctionHandler> handler_;
  std::unique_ptr<Server> server_;
};

Accept Echo(const RequestContext& context) {
  std::string prefix = context.head.method + " " + context.head.target.path + " ";
  return Buffered{1 << 20, [prefix](std::string body, Responder responder) {
                    std::move(responder).Send(Response{200, {}, prefix + body});
                  }};
}

TEST_F(TransportTest, AnswersARequest) {
  Serve(Echo);
  ClientRequest request;
  request.method = "POST";
  request.url = Url("/a/b?c=d");
  request.body = std::string("hello");
  const auto response = Client()->Send(request);
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "POST /a/b hello");
}

TEST_F(TransportTest, BothEndsHaveTheSameExporterAndTheConnectionIsKept) {
  std::mutex mutex;
  std::vector<std::string> exporters;
  std::vector<std::string> peers;
  Serve([&](const RequestContext& context) -> Accept {
    const std::lock_guard lock(mutex);
    exporters.push_back(context.tls_exporter);
    peers.push_back(context.head.peer);
    return Response{204, {}, ""};
  });
  const std::unique_ptr<HttpClient> client = Client();
  ClientRequest request;
  request.url = Url("/");
  std::vector<std::string> seen;
  for (int i = 0; i < 3; ++i) {
    const auto response = client->Send(request);
    ASSERT_TRUE(response.ok()) << response.status().ToString();
    seen.push_back(response->tls_exporter);
  }
  const std::lock_guard lock(mutex);
  EXPECT_EQ(seen, exporters);
  EXPECT_EQ(seen[0].size(), 32u);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(peers[0], peers[1]);
  EXPECT_EQ(peers[0], peers[2]);
}

struct HashingWriter final : BodyWriter {
  base::Status Start(int, const Headers&) override {
    hash = base::Sha256();
    bytes = 0;
    return base::OkStatus();
  }
  base::Status Write(std::span<const uint8_t> piece) override {
    hash.Update(piece);
    bytes += piece.size();
    return base::OkStatus();
  }
  base::Sha256 hash;
  uint64_t bytes = 0;
};

TEST_F(TransportTest, StreamsLargeBodiesBothWays) {
  const uint64_t size = (uint64_t{40} << 20) + 12345;
  const base::Path path = BigFile(size);
  const base::Digest expected = base::Digest::Of(base::ReadFile(path).value());
  Serve([&](const RequestContext& context) -> Accept {
    if (context.head.method == "GET") {
      return ServeFile(context.head, FileBody::Open(path).value(), {});
    }
    auto hash = std::make_shared<base::Sha256>();
    return std::make_unique<FunctionSink>(
        [hash](std::span<const uint8_t> bytes) {
          hash->Update(bytes);
          return base::OkStatus();
        },
        [hash](const Headers& trailers, Responder responder) {
          std::string text = std::move(*hash).Finish().ToString();
          text += trailers.GetOr("Fl-Test", "");
          std::move(responder).Send(Response{200, {}, text});
        });
  });
  const std::unique_ptr<HttpClient> client = Client();

  HashingWriter writer;
  ClientRequest get;
  get.url = Url("/file");
  get.writer = &writer;
  const auto got = client->Send(get);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ(writer.bytes, size);
  EXPECT_EQ(std::move(writer.hash).Finish(), expected);

  ClientRequest put;
  put.method = "PUT";
  put.url = Url("/file");
  put.body = FileUpload{path};
  put.expect_continue = true;
  const auto sent = client->Send(put);
  ASSERT_TRUE(sent.ok()) << sent.status().ToString();
  EXPECT_EQ(sent->body, expected.ToString());

  std::ifstream in(path, std::ios::binary);
  ClientRequest chunked;
  chunked.method = "PUT";
  chunked.url = Url("/file");
  chunked.body = StreamUpload{[&](std::span<uint8_t> out) -> base::Result<size_t> {
                                in.read(reinterpret_cast<char*>(out.data()),
                                        static_cast<std::streamsize>(out.size()));
                                return static_cast<size_t>(in.gcount());
                              },
                              std::nullopt, nullptr, [] { return Headers{{"Fl-Test", "!"}}; }};
  const auto streamed = client->Send(chunked);
  ASSERT_TRUE(streamed.ok()) << streamed.status().ToString();
  EXPECT_EQ(streamed->body, expected.ToString() + "!");
}

TEST_F(TransportTest, ClientsAreKnownByTheirCertificates) {
  const CertificateAuthority clients =
      CertificateAuthority::Create("clients", base::Clock::System()).value();
  client_authority_ = clients.certificate_pem();
  Serve([](const RequestContext& context) -> Accept {
    return Response{200, {}, context.client_certificate_name.value_or("nobody")};
  });
  const auto ask = [&](const std::optional<CertificateAndKey>& own) {
    ClientOptions options;
    options.ca_pem = authority_.certificate_pem();
    if (own) {
      options.certificate_pem = own->certificate_pem;
      options.key_pem = own->key_pem;
    }
    ClientRequest request;
    request.url = Url("/");
    return MakeCurlClient(options).value()->Send(request);
  };
  const std::string long_name = std::string(63, 'a') + ".example";
  const base::Clock& clock = base::Clock::System();
  EXPECT_EQ(ask(clients.IssueClient("hospital-a", clock).value())->body, "hospital-a");
  EXPECT_EQ(ask(clients.IssueClient(long_name, clock).value())->body, long_name);
  EXPECT_EQ(ask(std::nullopt)->body, "nobody");
  // Of another authority, expired, or made for servers.
  const base::SimulatedClock past(base::Time(std::chrono::seconds(1'500'000'000)));
  for (const CertificateAndKey& bad : {authority_.IssueClient("hospital-a", clock).value(),
                                       clients.IssueClient("hospital-a", past).value(),
                                       clients.IssueServer({"hospital-a"}, clock).value()}) {
    EXPECT_THAT(ask(bad), base::StatusIs(base::Code::kPermissionDenied,
                                         ::testing::HasSubstr("this client's certificate")));
  }
}

TEST_F(TransportTest, ACertificateCanBeRequired) {
  const CertificateAuthority clients =
      CertificateAuthority::Create("clients", base::Clock::System()).value();
  client_authority_ = clients.certificate_pem();
  require_client_certificate_ = true;
  Serve(Echo);
  ClientRequest request;
  request.url = Url("/");
  EXPECT_THAT(Client()->Send(request),
              base::StatusIs(base::Code::kPermissionDenied,
                             ::testing::HasSubstr("this client's certificate")));
}

TEST_F(TransportTest, OnlyTls13IsSpoken) {
  Serve(Echo);
  const auto openssl = [&](const std::string& version) {
    base::Command command;
    command.argv = {
        "openssl", "s_client", "-connect", "127.0.0.1:" + std::to_string(server_->port()),
        version,   "-alpn",    "http/1.1"};
    command.stdout_file = command.stderr_file = folder_ / ("out" + version);
    base::Result<base::Subprocess> child = base::Subprocess::Start(command);
    EXPECT_THAT(child, base::IsOk());
    EXPECT_THAT(child->Wait(), base::IsOk());
    return base::ReadFile(folder_ / ("out" + version)).value();
  };
  EXPECT_THAT(openssl("-tls1_2"), ::testing::HasSubstr("alert protocol version"));
  EXPECT_THAT(openssl("-tls1_3"),
              ::testing::AllOf(::testing::HasSubstr("Cipher is TLS_AES_128_GCM_SHA256"),
                               ::testing::HasSubstr("ALPN protocol: http/1.1")));
}

TEST_F(TransportTest, PlainHttpOnATlsPortIsExplained) {
  Serve(Echo);
  for (const std::string request : {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "PUT /x HTTP/1.1\r\n"}) {
    RawConnection connection = RawConnection::Open(server_->port()).value();
    ASSERT_THAT(connection.Send(request), base::IsOk());
    EXPECT_THAT(connection.ReceiveAll().value(),
                ::testing::AllOf(::testing::StartsWith("HTTP/1.1 400"),
                                 ::testing::HasSubstr("use https://")));
  }
}

TEST_F(TransportTest, NoiseOnATlsPortEndsTheConnection) {
  Serve(Echo);
  for (const std::string& noise : {std::string("\x16\x03\x01\xff\xff"), std::string(5000, '\0'),
                                   std::string("\x15\x03\x03\x00\x02\x02\x28", 7)}) {
    RawConnection connection = RawConnection::Open(server_->port()).value();
    ASSERT_THAT(connection.Send(noise), base::IsOk());
    connection.FinishSending();
    connection.ReceiveAll().status().ok();  // an alert or nothing, but an end
  }
  ClientRequest request;
  request.url = Url("/still/there");
  EXPECT_THAT(Client()->Send(request), base::IsOk());
}

TEST_F(TransportTest, BadCertificatesAreToldAtTheStart) {
  const CertificateAndKey one =
      authority_.IssueServer({"127.0.0.1"}, base::Clock::System()).value();
  const CertificateAndKey two =
      authority_.IssueServer({"127.0.0.1"}, base::Clock::System()).value();
  FunctionHandler handler(Echo);
  const auto start = [&](ServerTls tls) {
    ServerOptions options;
    options.tls = std::move(tls);
    return Server::Start(options, handler).status();
  };
  const auto refuses = [](const std::string& why) {
    return base::StatusIs(base::Code::kInvalidArgument, ::testing::HasSubstr(why));
  };
  EXPECT_THAT(start({"x", one.key_pem, "", false}), refuses("server's certificate"));
  EXPECT_THAT(start({one.certificate_pem, "x", "", false}), refuses("server's private key"));
  EXPECT_THAT(start({one.certificate_pem, two.key_pem, "", false}), refuses("does not belong"));
  EXPECT_THAT(start({one.certificate_pem, one.key_pem, "x", false}), refuses("for clients"));
  EXPECT_THAT(start({one.certificate_pem, one.key_pem, "", true}), refuses("no authority"));
}

/// How much of an upload a sink got, and whether it was whole.
TEST_F(TransportTest, AnUploadCutAnywhereIsNeverTakenForWhole) {
  const std::string body(1 << 20, 'u');
  std::mutex mutex;
  int finished = 0;
  std::atomic<int> aborted = 0;
  Serve([&](const RequestContext&) -> Accept {
    auto bytes = std::make_shared<size_t>(0);
    return std::make_unique<FunctionSink>(
        [bytes](std::span<const uint8_t> piece) {
          *bytes += piece.size();
          return base::OkStatus();
        },
        [&, bytes](const Headers&, Responder responder) {
          const std::lock_guard lock(mutex);
          EXPECT_EQ(*bytes, body.size());
          ++finished;
          std::move(responder).Send(Response{200, {}, ""});
        },
        [&] { ++aborted; });
  });
  const auto proxy = CutProxy::Start(server_->port()).value();
  const std::unique_ptr<HttpClient> client = Client();
  const std::string url = "https://127.0.0.1:" + std::to_string(proxy->port()) + "/";
  for (const bool chunked : {false, true}) {
    for (const uint64_t at : {0, 100, 600, 2000, 40000, 300000, 1000000, 1048700}) {
      for (const bool reset : {false, true}) {
        CutProxy::Fault fault;
        fault.cut_after_sent = at;
        fault.reset = reset;
        proxy->FailAll(fault);
        size_t given = 0;
        ClientRequest request;
        request.method = "POST";
        request.url = url;
        if (chunked) {
          request.body = StreamUpload{[&](std::span<uint8_t> out) -> base::Result<size_t> {
                                        const size_t n = std::min(out.size(), body.size() - given);
                                        std::copy_n(body.begin() + static_cast<ptrdiff_t>(given), n,
                                                    out.begin());
                                        given += n;
                                        return n;
                                      },
                                      std::nullopt, nullptr, nullptr};
        } else {
          request.body = body;
        }
        EXPECT_THAT(client->Send(request),
                    base::StatusIs(base::Code::kUnavailable, ::testing::HasSubstr("")))
            << at;
        proxy->CutAll();
      }
    }
  }
  server_->Stop(base::Duration(0));
  EXPECT_EQ(finished, 0);
}

}  // namespace
}  // namespace fl::transport
