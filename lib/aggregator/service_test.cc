// The daemon as agents see it: over HTTP, with sessions.

#include "aggregator/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/testing/service_fixture.h"
#include "wire/paths.h"

namespace fl::aggregator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

transport::Headers Counts(const std::map<std::string_view, std::string>& values) {
  transport::Headers headers;
  for (const auto& [name, value] : values) headers.Set(std::string(name), value);
  return headers;
}

spec::DifferentialPrivacy Noise() {
  spec::DifferentialPrivacy noise;
  noise.clip_norm = *spec::Fraction::Parse("1");
  noise.noise_multiplier = *spec::Fraction::Parse("1");
  noise.delta = *spec::Fraction::Parse("0.00001");
  return noise;
}

class ServiceTest : public ::testing::Test {
 protected:
  const Round& round() { return *f.service->core().FindJob(base::JobName("job"))->state.current(); }
  const Participant& ParticipantOf(const std::string& client) {
    return round().participants.at(base::ClientName(client));
  }
  ServiceFixture f{2};
};

TEST_F(ServiceTest, CountsAreTheWeightsWhereTheTaskTakesThem) {
  const std::map<std::string, std::string> tokens = {{"a", f.OpenSession("a")},
                                                     {"b", f.OpenSession("b")}};
  f.Submit();
  std::jthread other([&] { f.PollTask("b", tokens.at("b")); });
  const wire::Task task = f.PollTask("a", tokens.at("a"));
  EXPECT_TRUE(task.send_metrics);
  const transport::ClientResponse without = f.PutUpdate(task, "a", tokens.at("a"), 2, 4);
  EXPECT_EQ(without.status, 400);
  EXPECT_THAT(without.body, HasSubstr("Fl-Samples is missing"));
  EXPECT_EQ(f.PutUpdate(task, "a", tokens.at("a"), 2, 4, Counts({{wire::kSamples, "1"}})).status,
            200);
  EXPECT_EQ(f.PutUpdate(task, "b", tokens.at("b"), 6, 8, Counts({{wire::kSamples, "3"}})).status,
            200);
  f.WaitUntilFinished();
  EXPECT_THAT(f.Weights(1), ElementsAre(5, 7));
}

// Under privacy no count and no metric leaves a client: each weighs the same, and none is asked to
// evaluate, also where the job says so.
TEST_F(ServiceTest, WithoutCountsEachClientWeighsTheSame) {
  const std::map<std::string, std::string> tokens = {{"a", f.OpenSession("a")},
                                                     {"b", f.OpenSession("b")}};
  f.Submit([](spec::FederatedLearningJob& job) {
    job.spec.privacy.differential_privacy = Noise();
    job.spec.evaluation.clients = spec::EvaluationClients::kAll;
  });
  std::jthread other([&] { f.PollTask("b", tokens.at("b")); });
  const wire::Task task = f.PollTask("a", tokens.at("a"));
  EXPECT_FALSE(task.send_metrics);
  EXPECT_EQ(f.PutUpdate(task, "a", tokens.at("a"), 2, 4).status, 200);
  // What was not asked for is not kept, and costs nobody the round.
  for (const transport::Headers& told :
       {Counts({{wire::kSamples, "3"}}), Counts({{wire::kSteps, "3"}}),
        Counts({{wire::kTrainMetrics, R"({"loss":1})"}})}) {
    const transport::ClientResponse refused = f.PutUpdate(task, "b", tokens.at("b"), 6, 8, told);
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr("keeps counts and metrics at its clients"));
  }
  EXPECT_EQ(f.PutUpdate(task, "b", tokens.at("b"), 6, 8).status, 200);
  f.WaitUntilFinished();
  EXPECT_THAT(f.Weights(1), ElementsAre(4, 6));
  // Also what was written down of it names none.
  const std::string journal = *base::ReadFile(f.folder / "state/jobs/job/journal.jsonl");
  EXPECT_THAT(journal, HasSubstr("update-accepted"));
  EXPECT_THAT(journal, ::testing::Not(HasSubstr("\"samples\"")));
}

// Every PUT that an agent has, with the session that a newer one ended.
TEST_F(ServiceTest, B14_TheOldSessionsUploadsAreRefusedAndTheNewOneGetsTheTask) {
  const std::string old_session = f.OpenSession("a");
  const std::string other = f.OpenSession("b");
  f.Submit();
  std::jthread there([&] { f.PollTask("b", other); });
  const wire::Task before = f.PollTask("a", old_session);
  const std::string session = f.OpenSession("a");
  const wire::Task task = f.PollTask("a", session);
  EXPECT_EQ(task.Key(), before.Key());

  const base::ClientName client("a");
  const auto refused = [](const transport::ClientResponse& answer) {
    EXPECT_EQ(answer.status, 401) << answer.body;
    EXPECT_EQ(answer.headers.Get(wire::kSessionState), wire::kSessionSuperseded);
    EXPECT_THAT(answer.body, HasSubstr("replaced by a newer one"));
  };
  refused(f.PutUpdate(task, "a", old_session, 9, 9, Counts({{wire::kSamples, "1"}})));
  refused(f.Put(wire::FailurePath(task.job, task.round, client),
                wire::ToJson(wire::FailureReport{.reason = "old"}), old_session));
  refused(f.Put(wire::EvaluationPath(task.job, task.round, client),
                wire::ToJson(wire::EvaluationReport{.samples = 1}), old_session));
  {
    const std::lock_guard lock(f.service->core().mutex);
    EXPECT_EQ(ParticipantOf("a").state, Participant::State::kTraining);
    EXPECT_EQ(round().selected, 2);
  }
  EXPECT_EQ(f.PutUpdate(task, "a", session, 2, 4, Counts({{wire::kSamples, "1"}})).status, 200);
  EXPECT_EQ(f.PutUpdate(task, "b", other, 2, 4, Counts({{wire::kSamples, "1"}})).status, 200);
  f.WaitUntilFinished();
  EXPECT_THAT(f.Weights(1), ElementsAre(2, 4));
}

// The newer session opens while the old one's body is on its way.
TEST_F(ServiceTest, B14_AnUploadThatANewerSessionOvertakesIsRefused) {
  const std::string old_session = f.OpenSession("a");
  const std::string other = f.OpenSession("b");
  f.Submit();
  std::jthread there([&] { f.PollTask("b", other); });
  const wire::Task task = f.PollTask("a", old_session);
  std::string session;
  for (const bool valid : {true, false}) {
    const std::string bytes =
        valid ? f.UpdateBytes(9, 9) : f.UpdateBytes(std::numeric_limits<float>::quiet_NaN(), 9);
    const std::string& from = session.empty() ? old_session : session;
    std::string newer;
    size_t sent = 0;
    transport::StreamUpload upload;
    upload.length = bytes.size();
    upload.read = [&](std::span<uint8_t> buffer) -> base::Result<size_t> {
      // The first half is on its way when the second is asked for.
      if (sent > 0 && newer.empty()) newer = f.OpenSession("a");
      const size_t size = std::min({buffer.size(), bytes.size() - sent, bytes.size() / 2});
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(sent), size, buffer.begin());
      sent += size;
      return size;
    };
    const transport::ClientResponse answer = f.Put(
        wire::UpdatePath(task.job, task.round, base::ClientName("a")), std::move(upload), from,
        Counts(
            {{wire::kSamples, "1"}, {wire::kReprDigest, base::Digest::Of(bytes).ToReprDigest()}}));
    EXPECT_GE(answer.status, 400);
    if (valid) {
      EXPECT_EQ(answer.headers.Get(wire::kSessionState), wire::kSessionSuperseded);
    }
    const std::lock_guard lock(f.service->core().mutex);
    EXPECT_EQ(ParticipantOf("a").state, Participant::State::kTraining) << valid;
    session = newer;
  }
  EXPECT_EQ(f.PutUpdate(task, "a", session, 2, 4, Counts({{wire::kSamples, "1"}})).status, 200);
}

}  // namespace
}  // namespace fl::aggregator
