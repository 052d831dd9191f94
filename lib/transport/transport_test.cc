/// Both ends together, over TLS: what agents and aggregators rely on.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/digest.h"
#include "base/encoding.h"
#include "transport/certificates.h"
#include "transport/client.h"
#include "transport/serve_file.h"
#include "transport/server.h"
#include "transport/testing/function_handler.h"

namespace fl::transport {
namespace {

class TransportTest : public ::testing::Test {
 protected:
  TransportTest()
      : authority_(CertificateAuthority::Create("test authority", base::Clock::System()).value()),
        folder_(std::filesystem::temp_directory_path() /
                ("transport_test." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~TransportTest() override { std::filesystem::remove_all(folder_); }

  void Serve(std::function<Accept(const RequestContext&)> function, ServerOptions options = {}) {
    handler_ = std::make_unique<FunctionHandler>(std::move(function));
    const CertificateAndKey own =
        authority_.IssueServer({"localhost", "127.0.0.1"}, base::Clock::System()).value();
    options.tls = ServerTls{own.certificate_pem, own.key_pem, client_authority_, false};
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
  base::Path folder_;
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

}  // namespace
}  // namespace fl::transport
