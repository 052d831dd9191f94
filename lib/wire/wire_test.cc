#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/paths.h"
#include "wire/session.h"
#include "wire/status.h"
#include "wire/task.h"

namespace fl::wire {
namespace {

using ::testing::HasSubstr;

TEST(Paths, AreTheDocumentedOnes) {
  const base::JobName job("digits");
  const base::ClientName client("hospital-a");
  EXPECT_EQ(TaskPath(client), "/v1/agents/hospital-a/task");
  EXPECT_EQ(UpdatePath(job, base::RoundNumber(3), client),
            "/v1/jobs/digits/rounds/3/updates/hospital-a");
  EXPECT_EQ(JobActionPath(job, "pause"), "/v1/jobs/digits/pause");
  EXPECT_EQ(ModelVersionsPath(base::ModelName("m")), "/v1/models/m/versions");
}

TEST(SessionText, DiffersWhereAnyFieldDiffersOrMoves) {
  const base::ClientName client("a");
  const std::string text = SessionText("c", "agg", client, "x");
  EXPECT_NE(text, SessionText("ca", "gg", client, "x"));
  EXPECT_NE(text, SessionText("c", "agg", base::ClientName("ax"), ""));
  EXPECT_NE(text, SessionText("c", "agg", client, ""));
}

TEST(Session, RoundTrips) {
  SessionRequest request;
  request.client = base::ClientName("a");
  request.challenge = "c";
  request.signature = "s";
  const auto read = SessionRequestFromJson(ToJson(request));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->client, request.client);
  EXPECT_EQ(read->signature, "s");
  EXPECT_EQ(read->join_token, std::nullopt);
  EXPECT_THAT(SessionRequestFromJson("{}").status().message(), HasSubstr("\"client\" is missing"));

  Session session{base::SessionToken("t"), 3600, "agg"};
  EXPECT_EQ(SessionFromJson(ToJson(session))->token, session.token);
  EXPECT_EQ(ChallengeFromJson(ToJson(Challenge{"c", "agg"}))->challenge, "c");
}

Task SampleTask() {
  Task task;
  task.job = base::JobName("digits");
  task.round = base::RoundNumber(2);
  task.attempt = 1;
  task.deadline_seconds = 12.5;
  task.seed = UINT64_MAX;
  task.model = base::Digest::Of("weights");
  task.model_size = uint64_t{5} << 30;
  task.builtin_trainer = "mlp";
  task.config = R"({"batchSize":10,"learningRate":0.05})";
  task.mu = 0.25;
  return task;
}

TEST(Task, RoundTrips) {
  const Task task = SampleTask();
  const auto read = TaskFromJson(ToJson(task));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->Key(), "train digits round 2 attempt 1");
  EXPECT_EQ(read->seed, task.seed);
  EXPECT_EQ(read->model, task.model);
  EXPECT_EQ(read->model_size, task.model_size);
  EXPECT_EQ(read->config, task.config);
  EXPECT_EQ(read->mu, 0.25);
  EXPECT_EQ(ToJson(*read), ToJson(task));
}

TEST(Task, NeedsExactlyOneTrainer) {
  Task task = SampleTask();
  task.named_trainer = "mine";
  EXPECT_FALSE(TaskFromJson(ToJson(task)).ok());
}

TEST(Reports, RefuseWhatCannotBe) {
  EXPECT_FALSE(EvaluationReportFromJson(R"({"samples":-1,"metrics":{}})").ok());
  EXPECT_FALSE(EvaluationReportFromJson(R"({"samples":1,"metrics":{"a":"x"}})").ok());
  EXPECT_FALSE(FailureReportFromJson(R"({"task":"dance","reason":"x"})").ok());
  EXPECT_EQ(
      FailureReportFromJson(ToJson(FailureReport{TaskKind::kTrain, 0, std::string(9000, 'x')}))
          ->reason.size(),
      2000u);
}

TEST(Status, JobViewRoundTripsWithItsObject) {
  JobView view;
  view.object = R"({"apiVersion":"kubefl.dev/v1alpha1","metadata":{"name":"j"}})";
  view.revision = 42;
  view.status.conditions = {{"Succeeded", true, "RoundsDone", "all done", "2026-01-01T00:00:00Z"}};
  view.status.round = RoundStatus{.number = 3, .phase = "Done", .metrics = {{"accuracy", 0.5}}};
  view.status.model_version = 0;
  const auto read = JobViewFromJson(ToJson(view));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->object, view.object);
  EXPECT_EQ(read->revision, 42u);
  EXPECT_TRUE(read->status.Finished());
  EXPECT_EQ(read->status.round->metrics.at("accuracy"), 0.5);
  EXPECT_EQ(read->status.model_version, 0);
  EXPECT_EQ(read->status.base_version, std::nullopt);
  EXPECT_EQ(ToJson(read->status), ToJson(view.status));
  EXPECT_EQ(JobsFromJson(JobsToJson({view, view}, 7))->size(), 2u);
}

TEST(Status, ListsRoundTrip) {
  EXPECT_EQ(RoundsFromJson(RoundsToJson({{.number = 1, .clients = {{"a", "Late", "", 3}}}}, 1))
                ->at(0)
                .clients.at(0)
                .state,
            "Late");
  EXPECT_EQ(ClientsFromJson(ClientsToJson({{.name = "a", .labels = {{"k", "v"}}}}, 1))
                ->at(0)
                .labels.at("k"),
            "v");
  EXPECT_EQ(VersionsFromJson(VersionsToJson({{.version = 4, .tags = {"latest"}}}))->at(0).version,
            4);
  EXPECT_EQ(EventsFromJson(EventsToJson({{.sequence = 9, .message = "m"}}))->at(0).sequence, 9u);
  EXPECT_FALSE(RoundsFromJson(R"({"rounds":[{"number":"x"}]})").ok());
  EXPECT_FALSE(RoundsFromJson(R"({"rounds":7})").ok());
}

}  // namespace
}  // namespace fl::wire
