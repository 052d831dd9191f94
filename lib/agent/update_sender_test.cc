#include "agent/update_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "agent/testing/fakes.h"
#include "base/json.h"
#include "base/testing/status_matchers.h"
#include "wire/paths.h"

namespace fl::agent {
namespace {

using base::Code;
using base::Result;
using base::StatusIs;
using testing::HasSubstr;
using testing::SizeIs;
using transport::ClientRequest;
using transport::ClientResponse;

class UpdateSenderTest : public testing::Test {
 protected:
  UpdateSenderTest() {
    task_.job = base::JobName("digits");
    task_.round = base::RoundNumber(3);
    task_.attempt = 2;
    update_.digest = base::Digest::Of("weights");
    update_.size = 7;
    update_.samples = (int64_t{1} << 53) - 1;
    update_.steps = 12;
    update_.metrics = {{"loss", 0.25}};
  }

  Result<ClientResponse> Handle(const ClientRequest& request) {
    ClientResponse response;
    response.status = 200;
    if (request.url.ends_with("/v1/agents")) {
      response.body = wire::ToJson(wire::Session{base::SessionToken("t"), 3600, "a"});
      return response;
    }
    sent_.push_back(request);
    if (sent_.size() <= statuses_.size()) response.status = statuses_[sent_.size() - 1];
    return response;
  }
  const ClientRequest& SendOne() {
    EXPECT_THAT(sender_.SendUpdate(task_, update_, "/work/update", {}), base::IsOk());
    return sent_.back();
  }

  wire::Task task_;
  FinishedUpdate update_;
  std::vector<int> statuses_;
  std::vector<ClientRequest> sent_;
  RecordedSleeps sleeps_;
  ScriptedHttp http_{[this](const ClientRequest& request, int) { return Handle(request); }};
  const Seams seams_{.sleeper = sleeps_.sleeper()};
  Session session_{{.aggregator = "https://a", .client = base::ClientName("c")}, http_, seams_};
  UpdateSender sender_{session_, seams_};
};

TEST_F(UpdateSenderTest, AnUpdateSaysUpFrontWhatItIs) {
  const ClientRequest& sent = SendOne();
  EXPECT_EQ(sent.method, "PUT");
  EXPECT_EQ(sent.url, "https://a/v1/jobs/digits/rounds/3/updates/c");
  EXPECT_EQ(std::get<transport::FileUpload>(sent.body).path, "/work/update");
  EXPECT_EQ(sent.headers.Get(wire::kSamples), "9007199254740991");
  EXPECT_EQ(sent.headers.Get(wire::kSteps), "12");
  EXPECT_EQ(sent.headers.Get(wire::kAttempt), "2");
  EXPECT_EQ(sent.headers.Get(wire::kTrainMetrics), R"({"loss":0.25})");
  EXPECT_EQ(sent.headers.Get(wire::kReprDigest), base::Digest::Of("weights").ToReprDigest());
  EXPECT_FALSE(sent.expect_continue);
}

TEST_F(UpdateSenderTest, B18_LargeBodiesWaitForTheAggregatorsWord) {
  update_.size = (1 << 20) + 1;
  EXPECT_TRUE(SendOne().expect_continue);
  update_.size = (uint64_t{1} << 32) + 1;  // 1 in 32 bits
  EXPECT_TRUE(SendOne().expect_continue);
  update_.size = 1 << 20;
  EXPECT_FALSE(SendOne().expect_continue);
}

TEST_F(UpdateSenderTest, UnderPrivacyNoCountAndNoMetricLeaves) {
  task_.send_metrics = false;
  const ClientRequest& sent = SendOne();
  EXPECT_FALSE(sent.headers.Has(wire::kSamples));
  EXPECT_FALSE(sent.headers.Has(wire::kSteps));
  EXPECT_FALSE(sent.headers.Has(wire::kTrainMetrics));
}

TEST_F(UpdateSenderTest, MetricsFitIntoAHeader) {
  update_.metrics = {{"größe\r\nFl-Samples: 1", 1.0}};
  EXPECT_EQ(SendOne().headers.Get(wire::kTrainMetrics),
            "{\"gr\\u00f6\\u00dfe\\r\\nFl-Samples: 1\":1.0}");
  for (int i = 0; i < 1000; ++i)
    update_.metrics["m" + std::to_string(i) + std::string(200, 'x')] = i;
  const std::string_view many = *SendOne().headers.Get(wire::kTrainMetrics);
  EXPECT_LE(many.size(), 16u << 10);
  EXPECT_THAT(base::ParseJson(many, "metrics"), base::IsOk());
}

TEST_F(UpdateSenderTest, TheSameIsSentUntilThereIsAnAnswer) {
  statuses_ = {500, 503, 429, 507, 200};
  EXPECT_THAT(sender_.SendUpdate(task_, update_, "/work/update", {}), base::IsOk());
  ASSERT_THAT(sent_, SizeIs(5));
  for (const ClientRequest& sent : sent_) {
    EXPECT_EQ(sent.headers.Get(wire::kReprDigest), update_.digest.ToReprDigest());
    EXPECT_EQ(std::get<transport::FileUpload>(sent.body).path, "/work/update");
  }
  EXPECT_THAT(sleeps_.sleeps(), SizeIs(4));
}

TEST_F(UpdateSenderTest, LateAndRefusedAreToldApart) {
  statuses_ = {409, 400};
  ASSERT_OK_AND_ASSIGN(const Delivery late, sender_.SendUpdate(task_, update_, "/u", {}));
  EXPECT_EQ(late.kind, Delivery::Kind::kLate);
  ASSERT_OK_AND_ASSIGN(const Delivery refused, sender_.SendUpdate(task_, update_, "/u", {}));
  EXPECT_EQ(refused.kind, Delivery::Kind::kRefused);
  EXPECT_EQ(refused.status.code(), Code::kInvalidArgument);
}

TEST_F(UpdateSenderTest, AFailureSaysWhyAndWhatToDo) {
  task_.kind = wire::TaskKind::kEvaluate;
  EXPECT_THAT(sender_.SendFailure(task_, "it crashed; look at the log", {}), base::IsOk());
  EXPECT_EQ(sent_.back().url, "https://a/v1/jobs/digits/rounds/3/failures/c");
  ASSERT_OK_AND_ASSIGN(const wire::FailureReport report,
                       wire::FailureReportFromJson(std::get<std::string>(sent_.back().body)));
  EXPECT_EQ(report.kind, wire::TaskKind::kEvaluate);
  EXPECT_EQ(report.attempt, 2);
  EXPECT_EQ(report.reason, "it crashed; look at the log");
}

}  // namespace
}  // namespace fl::agent
