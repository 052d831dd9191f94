#include "transport/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/testing/simulated_clock.h"
#include "base/testing/status_matchers.h"
#include "transport/certificates.h"
#include "transport/testing/http_client_contract.h"

namespace fl::transport {
namespace {

using base::Code;
using base::IsOk;
using base::StatusIs;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;

/// A RetryingClient with the client it stands on.
class OwningRetryingClient final : public HttpClient {
 public:
  explicit OwningRetryingClient(std::unique_ptr<HttpClient> inner)
      : inner_(std::move(inner)),
        retrying_(*inner_, RetryOptions{.max_attempts = 3, .initial_delay = milliseconds(1)}) {}
  base::Result<ClientResponse> Send(const ClientRequest& request) override {
    return retrying_.Send(request);
  }

 private:
  const std::unique_ptr<HttpClient> inner_;
  RetryingClient retrying_;
};

class HttpClientContractTest
    : public ::testing::TestWithParam<std::tuple<std::string, HttpClientCase>> {};

TEST_P(HttpClientContractTest, Holds) {
  const auto& [implementation, contract_case] = GetParam();
  const bool retrying = implementation == "Retrying";
  contract_case.run([&](const ClientOptions& options) -> std::unique_ptr<HttpClient> {
    std::unique_ptr<HttpClient> curl = MakeCurlClient(options).value();
    if (!retrying) return curl;
    return std::make_unique<OwningRetryingClient>(std::move(curl));
  });
}

INSTANTIATE_TEST_SUITE_P(All, HttpClientContractTest,
                         ::testing::Combine(::testing::Values("Curl", "Retrying"),
                                            ::testing::ValuesIn(HttpClientContract().begin(),
                                                                HttpClientContract().end())),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) +
                                  std::string(std::get<1>(instance.param).name);
                         });

TEST(CurlClient, BadCertificatesAreToldWhenItIsMade) {
  const CertificateAuthority authority =
      CertificateAuthority::Create("a", base::Clock::System()).value();
  const CertificateAndKey one = authority.IssueClient("one", base::Clock::System()).value();
  const CertificateAndKey two = authority.IssueClient("two", base::Clock::System()).value();
  ClientOptions options;
  options.ca_pem = "nonsense";
  EXPECT_THAT(MakeCurlClient(options),
              StatusIs(Code::kInvalidArgument, HasSubstr("authority to trust")));
  options.ca_pem.clear();
  options.certificate_pem = one.certificate_pem;
  EXPECT_THAT(MakeCurlClient(options), StatusIs(Code::kInvalidArgument, HasSubstr("together")));
  options.key_pem = two.key_pem;
  EXPECT_THAT(MakeCurlClient(options),
              StatusIs(Code::kInvalidArgument, HasSubstr("does not belong")));
  options.key_pem = one.key_pem;
  EXPECT_THAT(MakeCurlClient(options), IsOk());
}

/// Gives answers from a list, and counts.
class ScriptedClient final : public HttpClient {
 public:
  explicit ScriptedClient(std::vector<base::Result<ClientResponse>> answers)
      : answers_(answers.begin(), answers.end()) {}
  base::Result<ClientResponse> Send(const ClientRequest&) override {
    ++sent;
    base::Result<ClientResponse> next = answers_.front();
    if (answers_.size() > 1) answers_.pop_front();
    return next;
  }
  int sent = 0;

 private:
  std::deque<base::Result<ClientResponse>> answers_;
};

ClientResponse Answer(int status, Headers headers = {}) {
  ClientResponse response;
  response.status = status;
  response.headers = std::move(headers);
  return response;
}

class RetryingClientTest : public ::testing::Test {
 protected:
  base::Result<ClientResponse> Send(ScriptedClient& inner, const ClientRequest& request = {},
                                    RetryOptions options = {}) {
    RetryingClient client(
        inner, options, clock_, random_, [this](base::Duration wait, const std::stop_token& stop) {
          waits_.push_back(wait);
          clock_.Advance(wait);
          return stop.stop_requested() ? base::Cancelled("stopped") : base::OkStatus();
        });
    return client.Send(request);
  }
  base::SimulatedClock clock_;
  base::SeededRandom random_{1};
  std::vector<base::Duration> waits_;
};

TEST_F(RetryingClientTest, TriesAgainAfterWaitsThatGrow) {
  ScriptedClient inner(
      {base::Unavailable("a"), base::DeadlineExceeded("b"), Answer(503), Answer(429), Answer(200)});
  EXPECT_EQ(Send(inner)->status, 200);
  EXPECT_EQ(inner.sent, 5);
  const auto between = [](int64_t low, int64_t high) {
    return AllOf(Ge(milliseconds(low)), Lt(milliseconds(high)));
  };
  EXPECT_THAT(waits_, ElementsAre(between(100, 200), between(200, 400), between(400, 800),
                                  between(800, 1600)));
}

TEST_F(RetryingClientTest, GivesBackTheLastAnswer) {
  ScriptedClient inner({base::Unavailable("no route"), Answer(503)});
  EXPECT_EQ(Send(inner)->status, 503);
  EXPECT_EQ(inner.sent, 5);
  ScriptedClient broken({base::Unavailable("no route")});
  EXPECT_THAT(Send(broken), StatusIs(Code::kUnavailable, "no route"));
}

TEST_F(RetryingClientTest, RetryAfterIsRespectedAndBounded) {
  ScriptedClient inner({Answer(503, {{"Retry-After", "7"}}), Answer(200)});
  EXPECT_EQ(Send(inner)->status, 200);
  EXPECT_THAT(waits_, ElementsAre(seconds(7)));
  waits_.clear();
  ScriptedClient far({Answer(503, {{"Retry-After", "600"}}), Answer(200)});
  EXPECT_EQ(Send(far)->status, 503);  // past give_up_after
  EXPECT_THAT(waits_, IsEmpty());
}

TEST_F(RetryingClientTest, OtherAnswersAndErrorsAreFinal) {
  for (const base::Result<ClientResponse>& result :
       {base::Result<ClientResponse>(Answer(404)), base::Result<ClientResponse>(Answer(500)),
        base::Result<ClientResponse>(base::Cancelled("c")),
        base::Result<ClientResponse>(base::PermissionDenied("p"))}) {
    ScriptedClient inner({result, Answer(200)});
    const auto sent = Send(inner);
    EXPECT_EQ(inner.sent, 1);
    EXPECT_EQ(sent.ok(), result.ok());
  }
}

// B15: only calls that may be repeated are repeated.
TEST_F(RetryingClientTest, B15_OnlyWhatMayBeSentTwiceIs) {
  const StreamUpload once{[](std::span<uint8_t>) -> base::Result<size_t> { return size_t{0}; },
                          std::nullopt, nullptr, nullptr};
  StreamUpload again = once;
  int rewound = 0;
  again.rewind = [&] {
    ++rewound;
    return base::OkStatus();
  };
  const struct {
    std::string method;
    bool marked;
    RequestBody body;
    bool repeated;
  } cases[] = {
      {"GET", false, {}, true},    {"HEAD", false, {}, true},
      {"PUT", false, {}, true},    {"DELETE", false, {}, true},
      {"POST", false, {}, false},  {"PATCH", false, {}, false},
      {"POST", true, {}, true},    {"PUT", false, once, false},
      {"PUT", false, again, true}, {"PUT", false, std::string("b"), true},
  };
  for (const auto& [method, marked, body, repeated] : cases) {
    ClientRequest request;
    request.method = method;
    request.idempotent = marked;
    request.body = body;
    ScriptedClient inner({base::Unavailable("lost"), Answer(200)});
    EXPECT_EQ(Send(inner, request).ok(), repeated) << method;
    EXPECT_EQ(inner.sent, repeated ? 2 : 1) << method;
  }
  EXPECT_EQ(rewound, 1);
}

TEST_F(RetryingClientTest, AStopEndsTheWaiting) {
  ScriptedClient inner({base::Unavailable("down")});
  std::stop_source stop;
  stop.request_stop();
  ClientRequest request;
  request.stop = stop.get_token();
  EXPECT_THAT(Send(inner, request), StatusIs(Code::kCancelled, HasSubstr("")));
  EXPECT_THAT(SleepFor(std::chrono::hours(1), stop.get_token()),
              StatusIs(Code::kCancelled, HasSubstr("stopped")));
}

}  // namespace
}  // namespace fl::transport
