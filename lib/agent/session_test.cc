#include "agent/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "agent/testing/fakes.h"
#include "base/encoding.h"
#include "base/testing/simulated_clock.h"
#include "base/testing/status_matchers.h"
#include "wire/paths.h"

namespace fl::agent {
namespace {

using base::Code;
using base::Result;
using base::StatusIs;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using transport::ClientRequest;
using transport::ClientResponse;

const base::ClientName kClient("hospital-a");

bool OpensSession(const ClientRequest& request) { return request.url.ends_with("/v1/agents"); }
std::string BodyOf(const ClientRequest& request) { return std::get<std::string>(request.body); }

ClientResponse Answer(int status, std::string body = "", std::string exporter = "") {
  ClientResponse response;
  response.status = status;
  response.body = std::move(body);
  response.tls_exporter = std::move(exporter);
  return response;
}
ClientResponse Error(const base::Status& status) {
  transport::Response response = transport::ErrorResponse(status);
  return Answer(response.status, std::get<std::string>(response.body));
}
ClientResponse Challenge(const std::string& text, std::string exporter = "") {
  return Answer(401, wire::ToJson(wire::Challenge{text, "aggregator-1"}), std::move(exporter));
}
ClientResponse Opened(const std::string& token) {
  return Answer(200, wire::ToJson(wire::Session{base::SessionToken(token), 3600, "aggregator-1"}));
}

class SessionTest : public testing::Test {
 protected:
  SessionOptions Options() {
    return {.aggregator = "https://fl.example.org", .client = kClient, .key = key_};
  }
  Seams TestSeams() { return {.clock = clock_, .random = random_, .sleeper = sleeps_.sleeper()}; }
  static ClientRequest Get(const std::string& path) {
    ClientRequest request;
    request.url = path;
    return request;
  }
  /// Opens sessions "token-1", "token-2", …, each with a challenge and a proof; other requests go
  /// to `other`.
  ScriptedHttp::Script WithSessions(
      std::function<Result<ClientResponse>(const ClientRequest&)> other) {
    return [this, other = std::move(other)](const ClientRequest& request,
                                            int) -> Result<ClientResponse> {
      if (!OpensSession(request)) return other(request);
      const wire::SessionRequest message = wire::SessionRequestFromJson(BodyOf(request)).value();
      if (!message.challenge) return Challenge("c");
      return Opened("token-" + std::to_string(++opened_));
    };
  }

  const base::PrivateKey key_ = base::PrivateKey::Generate(base::KeyType::kEd25519).value();
  base::SimulatedClock clock_;
  base::SeededRandom random_{1};
  RecordedSleeps sleeps_;
  std::atomic<int> opened_{0};
};

TEST_F(SessionTest, SignsTheChallengeWithTheConnectionsExporter) {
  ScriptedHttp http([&](const ClientRequest& request, int number) -> Result<ClientResponse> {
    if (number == 0) return Challenge("challenge-1", std::string(32, 'x'));
    if (number == 1) {
      const wire::SessionRequest message = wire::SessionRequestFromJson(BodyOf(request)).value();
      EXPECT_EQ(message.client, kClient);
      EXPECT_EQ(message.challenge, "challenge-1");
      const std::string text =
          wire::SessionText("challenge-1", "aggregator-1", kClient, std::string(32, 'x'));
      const auto signature = base::Base64Decode(message.signature.value()).value();
      EXPECT_THAT(key_.public_key().Verify(base::AsBytes(text), signature), base::IsOk());
      EXPECT_FALSE(message.public_key.has_value());
      ClientResponse opened = Opened("secret");
      opened.tls_exporter = std::string(32, 'x');
      return opened;
    }
    EXPECT_EQ(request.url, "https://fl.example.org/v1/status");
    EXPECT_EQ(request.headers.Get("Authorization"), "Bearer secret");
    return Answer(200, "yes");
  });
  Session session(Options(), http, TestSeams());
  ASSERT_OK_AND_ASSIGN(const ClientResponse response, session.Send(Get("/v1/status")));
  EXPECT_EQ(response.body, "yes");
  EXPECT_EQ(http.sent().size(), 3u);
}

TEST_F(SessionTest, StartsOverWhereTheAnswerWentOverAnotherConnection) {
  ScriptedHttp http([&](const ClientRequest& request, int number) -> Result<ClientResponse> {
    if (number == 0) return Challenge("first", "connection 1");
    if (number == 1) return Challenge("refused", "connection 2");
    if (number == 2) return Challenge("second", "connection 2");
    if (number == 3) {
      EXPECT_EQ(wire::SessionRequestFromJson(BodyOf(request)).value().challenge, "second");
      return Opened("token");
    }
    return Answer(200);
  });
  Session session(Options(), http, TestSeams());
  EXPECT_THAT(session.Send(Get("/x")), base::IsOk());
  EXPECT_THAT(sleeps_.sleeps(), ElementsAre());  // nothing is wrong: no waiting
}

TEST_F(SessionTest, B17_AnAggregatorThatIsNotUpYetIsAwaited) {
  ScriptedHttp http([&](const ClientRequest& request, int number) -> Result<ClientResponse> {
    if (number < 50) return base::Unavailable("connection refused");
    if (!OpensSession(request)) return Answer(200);
    return number == 50 ? Challenge("c") : Opened("token");
  });
  Session session(Options(), http, TestSeams());
  EXPECT_THAT(session.Send(Get("/x")), base::IsOk());
  const std::vector<base::Duration> sleeps = sleeps_.sleeps();
  ASSERT_EQ(sleeps.size(), 50u);
  EXPECT_THAT(sleeps.front(), AllOf(Ge(kFirstRetryDelay / 2), Le(kFirstRetryDelay)));
  EXPECT_THAT(sleeps.back(), AllOf(Ge(kLongestRetryDelay / 2), Le(kLongestRetryDelay)));
  EXPECT_THAT(sleeps, Each(Le(kLongestRetryDelay)));
}

TEST_F(SessionTest, B17_TheWayToTheAggregatorHasManyWaysToFail) {
  ScriptedHttp http([&](const ClientRequest& request, int number) -> Result<ClientResponse> {
    switch (number) {
      case 0:
        return base::DeadlineExceeded("no answer");
      case 1:
        return base::PermissionDenied("the certificate is not trusted");
      case 2:
        return Answer(502, "<html>no upstream</html>");
      case 3:
        return Answer(400, "what?");
      case 4:
        return Answer(401, "a page of a captive portal");
      case 5:
        return Answer(200, "{}");
      case 6:
        return Answer(404);
      default:
        break;
    }
    if (!OpensSession(request)) return Answer(200);
    return number == 7 ? Challenge("c") : Opened("token");
  });
  Session session(Options(), http, TestSeams());
  EXPECT_THAT(session.Send(Get("/x")), base::IsOk());
  EXPECT_EQ(sleeps_.sleeps().size(), 7u);
}

TEST_F(SessionTest, WhatNoWaitingMendsIsFinal) {
  ScriptedHttp http([](const ClientRequest&, int) -> Result<ClientResponse> {
    return base::InvalidArgument("plain http where TLS is required");
  });
  Session session(Options(), http, TestSeams());
  EXPECT_THAT(session.Send(Get("/x")), StatusIs(Code::kInvalidArgument, HasSubstr("TLS")));
  EXPECT_THAT(sleeps_.sleeps(), ElementsAre());
}

TEST_F(SessionTest, AnUnknownClientGoesOnAsking) {
  ScriptedHttp http([&](const ClientRequest& request, int number) -> Result<ClientResponse> {
    if (number < 40) {
      return number % 2 == 0 ? Challenge("c")
                             : Error(base::PermissionDenied("no such client", "create it"));
    }
    if (!OpensSession(request)) return Answer(200);
    return number == 40 ? Challenge("c") : Opened("token");
  });
  Session session(Options(), http, TestSeams());
  EXPECT_THAT(session.Send(Get("/x")), base::IsOk());
  const std::vector<base::Duration> sleeps = sleeps_.sleeps();
  ASSERT_EQ(sleeps.size(), 20u);
  EXPECT_THAT(sleeps.back(), Ge(std::chrono::seconds(15)));  // slower than for a broken way
  EXPECT_THAT(sleeps, Each(Le(std::chrono::seconds(30))));
}

TEST_F(SessionTest, TheJoinTokenIsShownOnlyWhereTheKeyAloneDoesNotDo) {
  for (const base::Status& refusal : {base::PermissionDenied("the client has no key yet"),
                                      base::Unauthenticated("no key is known of it")}) {
    std::vector<bool> tokens_shown;
    bool bound = false;
    ScriptedHttp http([&](const ClientRequest& request, int) -> Result<ClientResponse> {
      if (!OpensSession(request)) return Answer(200);
      const wire::SessionRequest message = wire::SessionRequestFromJson(BodyOf(request)).value();
      if (!message.challenge) return Challenge("c");
      tokens_shown.push_back(message.join_token.has_value());
      if (message.join_token == "once" && message.public_key == key_.public_key().ToOpenSsh()) {
        bound = true;
      }
      if (!bound) return Error(refusal);
      return Opened("token");
    });
    SessionOptions options = Options();
    options.join_token = "once";
    {
      Session session(options, http, TestSeams());
      EXPECT_THAT(session.Send(Get("/x")), base::IsOk());
    }
    Session restarted(options, http, TestSeams());
    EXPECT_THAT(restarted.Send(Get("/x")), base::IsOk());
    EXPECT_THAT(tokens_shown, ElementsAre(false, true, false));
    EXPECT_THAT(sleeps_.sleeps(), ElementsAre());
  }
}

TEST_F(SessionTest, ACertificateNeedsNoKey) {
  ScriptedHttp http([&](const ClientRequest& request, int) -> Result<ClientResponse> {
    return OpensSession(request) ? Opened("token") : Answer(200);
  });
  SessionOptions options = Options();
  options.key.reset();
  Session session(options, http, TestSeams());
  EXPECT_THAT(session.Send(Get("/x")), base::IsOk());
}

TEST_F(SessionTest, IsRenewedBeforeItExpires) {
  ScriptedHttp http(WithSessions([](const ClientRequest&) { return Answer(200); }));
  Session session(Options(), http, TestSeams());
  ASSERT_THAT(session.Send(Get("/x")), base::IsOk());
  clock_.Advance(std::chrono::minutes(50));
  ASSERT_THAT(session.Send(Get("/x")), base::IsOk());
  EXPECT_EQ(opened_, 1);
  clock_.Advance(std::chrono::minutes(5));
  ASSERT_THAT(session.Send(Get("/x")), base::IsOk());
  EXPECT_EQ(opened_, 2);
  EXPECT_EQ(http.sent().back().headers.Get("Authorization"), "Bearer token-2");
}

TEST_F(SessionTest, AForgottenSessionIsOpenedAgainAtOnce) {
  ScriptedHttp http(WithSessions([](const ClientRequest& request) {
    return Answer(request.headers.Get("Authorization") == "Bearer token-1" ? 401 : 200);
  }));
  Session session(Options(), http, TestSeams());
  ASSERT_OK_AND_ASSIGN(const ClientResponse response, session.Send(Get("/x")));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(opened_, 2);
  EXPECT_THAT(sleeps_.sleeps(), ElementsAre());
}

TEST_F(SessionTest, ASessionThatIsNeverTakenDoesNotLoop) {
  ScriptedHttp http(WithSessions([](const ClientRequest&) { return Answer(401); }));
  Session session(Options(), http, TestSeams());
  ASSERT_OK_AND_ASSIGN(const ClientResponse response, session.Send(Get("/x")));
  EXPECT_EQ(response.status, 401);
  EXPECT_EQ(opened_, 2);
}

TEST_F(SessionTest, B14_ASessionTakenOverIsNotFoughtFor) {
  ScriptedHttp http(WithSessions([&](const ClientRequest&) {
    ClientResponse response = Answer(opened_ <= 4 ? 401 : 200);
    response.headers.Set(std::string(wire::kSessionState), std::string(wire::kSessionSuperseded));
    return response;
  }));
  Session session(Options(), http, TestSeams());
  for (int i = 0; i < 3; ++i) ASSERT_THAT(session.Send(Get("/x")), base::IsOk());
  const std::vector<base::Duration> sleeps = sleeps_.sleeps();
  ASSERT_EQ(sleeps.size(), 4u);  // before each session but the first
  EXPECT_THAT(sleeps, Each(Ge(std::chrono::seconds(30))));
  EXPECT_THAT(sleeps.back(), Ge(std::chrono::minutes(4)));
}

TEST_F(SessionTest, TwoThreadsShareOneSession) {
  ScriptedHttp http(WithSessions([](const ClientRequest&) { return Answer(200); }));
  Session session(Options(), http, TestSeams());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 50; ++j) EXPECT_THAT(session.Send(Get("/x")), base::IsOk());
      });
    }
  }
  EXPECT_EQ(opened_, 1);
}

class SendUntilAnsweredTest : public SessionTest {};

TEST_F(SendUntilAnsweredTest, SendsTheSameAgainUntilThereIsAnAnswer) {
  int number = 0;
  ScriptedHttp http(WithSessions([&](const ClientRequest& request) -> Result<ClientResponse> {
    EXPECT_EQ(BodyOf(request), "the bytes");
    switch (number++) {
      case 0:
        return base::Unavailable("cut");
      case 1:
        return base::DeadlineExceeded("stalled");
      case 2:
        return Answer(500);
      case 3:
        return Answer(503);
      case 4: {
        ClientResponse busy = Answer(429);
        busy.headers.Set("Retry-After", "17");
        return busy;
      }
      default:
        return Answer(409);
    }
  }));
  Session session(Options(), http, TestSeams());
  const auto make = [&]() -> Result<ClientRequest> {
    ClientRequest request = Get("/x");
    request.method = "PUT";
    request.body = std::string("the bytes");
    return request;
  };
  ASSERT_OK_AND_ASSIGN(const ClientResponse response,
                       SendUntilAnswered(session, TestSeams(), {}, make));
  EXPECT_EQ(response.status, 409);
  ASSERT_EQ(sleeps_.sleeps().size(), 5u);
  EXPECT_EQ(sleeps_.sleeps().back(), std::chrono::seconds(17));
}

TEST_F(SendUntilAnsweredTest, EndsBetweenAttemptsOnceTheTaskIsWithdrawn) {
  std::stop_source withdrawn;
  int number = 0;
  ScriptedHttp http(WithSessions([&](const ClientRequest&) -> Result<ClientResponse> {
    if (++number == 3) withdrawn.request_stop();
    return base::Unavailable("cut");
  }));
  Session session(Options(), http, TestSeams());
  EXPECT_THAT(SendUntilAnswered(session, TestSeams(), withdrawn.get_token(),
                                [] { return Result<ClientRequest>(Get("/x")); }),
              StatusIs(Code::kCancelled));
  EXPECT_EQ(number, 3);
}

TEST_F(SendUntilAnsweredTest, WhatAnotherAttemptCannotMendIsReturned) {
  ScriptedHttp http(WithSessions([](const ClientRequest&) -> Result<ClientResponse> {
    return base::NotFound("the file is gone");
  }));
  Session session(Options(), http, TestSeams());
  EXPECT_THAT(
      SendUntilAnswered(session, TestSeams(), {}, [] { return Result<ClientRequest>(Get("/x")); }),
      StatusIs(Code::kNotFound));
}

}  // namespace
}  // namespace fl::agent
