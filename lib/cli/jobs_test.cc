// Commands on jobs, against a server that answers as it is told.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/simulated_clock.h"
#include "base/testing/temporary_directory.h"
#include "cli/testing/run_command.h"
#include "cli/testing/scripted_aggregator.h"
#include "wire/status.h"

namespace fl::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kJobObject =
    R"({"apiVersion":"kubefl.dev/v1alpha1","kind":"FederatedLearningJob","metadata":{"name":"digits"},"spec":{"modelRef":{"name":"digits"},"rounds":20,"trainer":{"builtin":"mlp"}}})";
constexpr const char* kSubmission = R"(
kind: FederatedLearningJob
apiVersion: kubefl.dev/v1alpha1
metadata: {name: digits}
spec: {modelRef: {name: digits}, rounds: 20, trainer: {builtin: mlp}}
---
kind: FederatedClient
apiVersion: kubefl.dev/v1alpha1
metadata: {name: site-b}
spec: {type: Pod, pod: {image: "registry.example.org/t:1"}}
---
kind: FederatedModel
apiVersion: kubefl.dev/v1alpha1
metadata: {name: digits}
spec: {initial: {builtin: {architecture: mlp, layers: [64, 32, 10]}}}
)";

std::string Job(uint64_t revision, int64_t rounds_done, const std::string& condition,
                const std::string& message = "") {
  wire::JobView view;
  view.object = kJobObject;
  view.revision = revision;
  view.status.rounds_done = rounds_done;
  view.status.rounds_total = 20;
  view.status.model_version = rounds_done;
  view.status.metrics = {{"accuracy", 0.9534}};
  view.status.start_time = "2027-01-15T07:59:00Z";
  view.status.conditions = {
      {.type = condition, .status = true, .reason = "Because", .message = message}};
  return wire::ToJson(view);
}

class JobsTest : public ::testing::Test {
 protected:
  CommandResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--aggregator", aggregator_.url(), "--insecure"});
    return runner_.Run(arguments);
  }

  base::SimulatedClock clock_;  // 2027-01-15T08:00:00Z
  ScriptedAggregator aggregator_;
  CommandRunner runner_{.clock = &clock_};
};

TEST_F(JobsTest, ListInEveryFormat) {
  aggregator_.On("GET /v1/jobs",
                 {{200, R"({"revision":7,"jobs":[)" + Job(7, 5, "Progressing") + "]}"}});
  CommandResult result = Run({"list"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "NAME     STATE     ROUND   MODEL    VERSION   METRICS           AGE\n"
            "digits   Running   5/20    digits   5         accuracy=0.9534   60s\n");
  EXPECT_EQ(Run({"list", "-o", "name"}).out, "job/digits\n");
  EXPECT_EQ(Run({"list", "-o", "jsonpath={.items[*].status.modelVersion}"}).out, "5");
  EXPECT_THAT(Run({"list", "-o", "wide"}).out, HasSubstr("MESSAGE"));
  EXPECT_THAT(Run({"list", "-o", "yaml"}).out, HasSubstr("kind: List"));
}

TEST_F(JobsTest, ListOfNothingSaysSoOnStderr) {
  aggregator_.On("GET /v1/jobs", {{200, R"({"revision":7,"jobs":[]})"}});
  const CommandResult result = Run({"list"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "no jobs\n");
}

TEST_F(JobsTest, OneObjectIsNoList) {
  aggregator_.On("GET /v1/jobs/digits", {{200, Job(7, 5, "Progressing")}});
  EXPECT_EQ(Run({"get", "job", "digits", "-o", "jsonpath={.spec.rounds} {.metadata.name}"}).out,
            "20 digits");
  EXPECT_EQ(Run({"get", "job/digits", "-o", "jsonpath={.kind}"}).out, "FederatedLearningJob");
}

TEST_F(JobsTest, WhatTheAggregatorRefusesIsSaidWithItsExitCode) {
  const std::vector<std::pair<int, std::pair<std::string, int>>> answers = {
      {404, {R"({"error":{"code":"NotFound","message":"no job \"digits\"","hint":"fl list"}})", 1}},
      {403, {R"({"error":{"code":"PermissionDenied","message":"no","hint":""}})", 2}},
      {401, {R"({"error":{"code":"Unauthenticated","message":"who?","hint":""}})", 2}},
      {409, {R"({"error":{"code":"FailedPrecondition","message":"an operator owns it"}})", 1}},
      {500, {R"({"error":{"code":"Internal","message":"oops"}})", 5}},
      {400, {R"({"error":{"code":"InvalidArgument","message":"bad"}})", 4}},
  };
  for (const auto& [http, expected] : answers) {
    aggregator_.On("POST /v1/jobs/digits/pause", {{http, expected.first}});
    const CommandResult result = Run({"pause", "digits"});
    EXPECT_EQ(result.exit_code, expected.second) << http;
    EXPECT_THAT(result.err, HasSubstr("fl: error: "));
    EXPECT_EQ(result.out, "");
  }
  // Not repeated by itself: the call may have been made.
  EXPECT_EQ(aggregator_.Writes().size(), answers.size());
}

TEST_F(JobsTest, NobodyThereExitsTwo) {
  const CommandResult result =
      runner_.Run({"list", "--aggregator", "http://127.0.0.1:1", "--insecure"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("hint: check the address, and that the server runs there"));
}

TEST_F(JobsTest, TheTokenTravelsInAHeaderOfItsOwn) {
  base::TemporaryDirectory folder;
  ASSERT_TRUE(base::WriteFileAtomically(folder / "token", "secret\n", 0600).ok());
  aggregator_.On("GET /v1/jobs", {{200, R"({"revision":7,"jobs":[]})"}});
  runner_.environment = {{"FL_TOKEN_FILE", (folder / "token").string()}};
  EXPECT_EQ(Run({"list"}).exit_code, 0);
  EXPECT_EQ(aggregator_.requests()[0].admin_token, "secret");
  runner_.environment = {{"FL_TOKEN_FILE", (folder / "none").string()}};
  EXPECT_EQ(Run({"list"}).exit_code, 4);
}

TEST_F(JobsTest, B15_SubmitGivesModelClientsJobAndMayBeRepeated) {
  const std::string other =
      R"({"apiVersion":"kubefl.dev/v1alpha1","kind":"FederatedClient","metadata":{"name":"site-a"},"spec":{"type":"Pod","pod":{"image":"x/y:1"}}})";
  aggregator_.On("GET /v1/clients?objects=1",
                 {{200, R"({"revision":3,"objects":[)" + other + "]}"}});
  aggregator_.On("PUT /v1/models/digits", {{201, R"({"result":"created"})"}});
  aggregator_.On("PUT /v1/clients?revision=4", {{200, R"({"result":"configured"})"}});
  aggregator_.On("PUT /v1/jobs/digits", {{201, R"({"result":"created"})"}});
  runner_.in = kSubmission;
  CommandResult result = Run({"submit", "-f", "-"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "model/digits created\nclient/site-b created\njob/digits created\n");
  EXPECT_THAT(
      aggregator_.Writes(),
      ElementsAre("PUT /v1/models/digits", "PUT /v1/clients?revision=4", "PUT /v1/jobs/digits"));
  // Those who are there already stay.
  EXPECT_THAT(aggregator_.requests()[2].body, HasSubstr("site-a"));
  EXPECT_THAT(aggregator_.requests()[2].body, HasSubstr("site-b"));

  // Again, the aggregator knows all of it.
  std::string both = aggregator_.requests()[2].body;
  both = both.substr(both.find('['));
  both.pop_back();
  aggregator_.On("GET /v1/clients?objects=1", {{200, R"({"revision":4,"objects":)" + both + "}"}});
  aggregator_.On("PUT /v1/models/digits", {{200, R"({"result":"unchanged"})"}});
  aggregator_.On("PUT /v1/jobs/digits", {{200, R"({"result":"unchanged"})"}});
  result = Run({"submit", "-f", "-"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "model/digits unchanged\nclient/site-b unchanged\njob/digits unchanged\n");
  EXPECT_EQ(aggregator_.Writes().size(), 5u);  // no list of clients was put
}

TEST_F(JobsTest, SubmitReadsAgainWhereAnotherWasFaster) {
  aggregator_.On("GET /v1/clients?objects=1", {{200, R"({"revision":3,"objects":[]})"},
                                               {200, R"({"revision":5,"objects":[]})"}});
  aggregator_.On("PUT /v1/clients?revision=4",
                 {{409, R"({"error":{"code":"FailedPrecondition","message":"old"}})"}});
  aggregator_.On("PUT /v1/clients?revision=6", {{200, R"({"result":"configured"})"}});
  runner_.in =
      "{apiVersion: kubefl.dev/v1alpha1, kind: FederatedClient, metadata: {name: a}, spec: {type: "
      "Pod, pod: {image: x}}}";
  const CommandResult result = Run({"submit", "-f", "-"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(aggregator_.Writes(),
              ElementsAre("PUT /v1/clients?revision=4", "PUT /v1/clients?revision=6"));
}

TEST_F(JobsTest, SubmitSendsNothingWhereAnyDocumentIsBad) {
  runner_.in = std::string(kSubmission) + "---\nkind: FederatedModel\nnonsense: 1\n";
  const CommandResult result = Run({"submit", "-f", "-"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("nothing was submitted"));
  EXPECT_THAT(aggregator_.requests(), IsEmpty());
}

TEST_F(JobsTest, WaitForEachGoal) {
  struct Case {
    std::string goal;
    std::string condition;
    int exit_code;
  };
  for (const Case& one : std::vector<Case>{{"finished", "Succeeded", 0},
                                           {"finished", "Failed", 0},
                                           {"succeeded", "Succeeded", 0},
                                           {"succeeded", "Failed", 1},
                                           {"failed", "Failed", 0},
                                           {"failed", "Succeeded", 1},
                                           {"round=3", "Progressing", 0},
                                           {"round=9", "Succeeded", 1}}) {
    SCOPED_TRACE(one.goal + " " + one.condition);
    aggregator_.On("GET /v1/jobs/digits", {{200, Job(1, 1, "Progressing")}});
    aggregator_.On("GET /v1/jobs/digits?since=1&wait=30", {{200, Job(2, 3, one.condition, "why")}});
    const CommandResult result = Run({"wait", "digits", "--for=" + one.goal});
    EXPECT_EQ(result.exit_code, one.exit_code) << result.err;
    if (one.exit_code != 0) {
      EXPECT_THAT(result.err, HasSubstr("why"));
    }
  }
}

TEST_F(JobsTest, WaitEndsWithItsTime) {
  aggregator_.On("GET /v1/jobs/digits", {{200, Job(1, 1, "Progressing")}});
  const CommandResult result = Run({"wait", "digits", "--timeout", "0s"});
  EXPECT_EQ(result.exit_code, 124);
  EXPECT_THAT(result.err, HasSubstr("timed out waiting for job \"digits\""));
}

TEST_F(JobsTest, StoppedWhileWaiting) {
  aggregator_.On("GET /v1/jobs/digits", {{200, Job(1, 1, "Progressing")}});
  std::stop_source stop;
  stop.request_stop();
  runner_.stop = stop.get_token();
  EXPECT_EQ(Run({"wait", "digits"}).exit_code, 130);
}

TEST_F(JobsTest, AnOutcomeBeforeTheLastRetryDoesNotCount) {
  std::string retried = Job(2, 3, "Failed");
  const std::string rounds = "\"rounds\":20";
  retried.replace(retried.find(rounds), rounds.size(), "\"attempt\":1," + rounds);
  aggregator_.On("GET /v1/jobs/digits", {{200, retried}});
  EXPECT_EQ(Run({"wait", "digits", "--timeout", "0s"}).exit_code, 124);
}

TEST_F(JobsTest, WatchInAPipePrintsChangesAndExitsWithTheJob) {
  aggregator_.On("GET /v1/jobs/digits", {{200, Job(1, 1, "Progressing")}});
  aggregator_.On("GET /v1/jobs/digits?since=1&wait=30", {{200, Job(2, 2, "Progressing")}});
  aggregator_.On("GET /v1/jobs/digits?since=2&wait=30", {{200, Job(3, 20, "Failed", "no quorum")}});
  const CommandResult result = Run({"status", "digits", "-w", "--exit-on-finish"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out,
            "job/digits Running round 1/20 accuracy=0.9534\n"
            "job/digits Running round 2/20 accuracy=0.9534\n"
            "job/digits Failed round 20/20 accuracy=0.9534\n");
  EXPECT_EQ(result.err, "fl: error: job \"digits\" failed: no quorum\n");
}

TEST_F(JobsTest, StatusIsATree) {
  aggregator_.On("GET /v1/jobs/digits", {{200, Job(1, 1, "Progressing")}});
  wire::RoundStatus done{.number = 1, .phase = "Done", .selected = 2, .accepted = 2, .version = 1};
  done.metrics = {{"accuracy", 0.5}};
  wire::RoundStatus open{
      .number = 2, .phase = "Collecting", .selected = 3, .accepted = 1, .rejected = 1};
  open.clients = {{.name = "a", .state = "Accepted", .samples = 120},
                  {.name = "bb", .state = "Rejected", .reason = "tensor \"w\" has NaN"},
                  {.name = "c", .state = "Training"}};
  aggregator_.On("GET /v1/jobs/digits/rounds", {{200, wire::RoundsToJson({done, open}, 1)}});
  EXPECT_EQ(Run({"status", "digits"}).out,
            "* job/digits  Running  round 1/20  v1  accuracy=0.9534\n"
            "|- + round 1  Done  2/2 accepted  v1  accuracy=0.5\n"
            "`- * round 2  Collecting  1/3 accepted, 1 rejected\n"
            "   |- + a   Accepted  120 samples\n"
            "   |- x bb  Rejected  tensor \"w\" has NaN\n"
            "   `- * c   Training\n");
  runner_.terminal = true;
  runner_.environment = {{"LANG", "de_DE.UTF-8"}};
  EXPECT_THAT(Run({"status", "digits", "--color=never"}).out, HasSubstr("└─ ● round 2"));
  EXPECT_THAT(Run({"status", "digits", "--color=never", "--ascii"}).out, HasSubstr("`- * round 2"));
}

TEST_F(JobsTest, LogsFollowToTheEnd) {
  const wire::JobEvent first{.sequence = 1, .time = "T1", .level = "info", .message = "one"};
  const wire::JobEvent second{.sequence = 2, .time = "T2", .level = "warning", .message = "two"};
  aggregator_.On("GET /v1/jobs/digits/events?after=0&wait=0", {{200, wire::EventsToJson({first})}});
  aggregator_.On("GET /v1/jobs/digits",
                 {{200, Job(1, 1, "Progressing")}, {200, Job(2, 20, "Succeeded")}});
  aggregator_.On("GET /v1/jobs/digits/events?after=1&wait=30",
                 {{200, wire::EventsToJson({second})}});
  aggregator_.On("GET /v1/jobs/digits/events?after=2&wait=0", {{200, wire::EventsToJson({})}});
  const CommandResult result = Run({"logs", "digits", "-f"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "T1 info one\nT2 warning two\n");
}

TEST_F(JobsTest, RollbackAsksTheAggregator) {
  aggregator_.On("PUT /v1/models/digits/pin", {{200, R"({"result":"pinned","from":5,"to":4})"}});
  EXPECT_EQ(Run({"rollback", "digits"}).out, "model/digits rolled back: v5 -> v4 (pinned)\n");
  EXPECT_EQ(aggregator_.requests()[0].body, "{}");
  EXPECT_EQ(Run({"rollback", "digits", "--to-version", "v4"}).exit_code, 0);
  EXPECT_EQ(aggregator_.requests()[1].body, R"({"version":4})");
  aggregator_.On("PUT /v1/models/digits/pin", {{200, R"({"result":"unchanged","from":4,"to":4})"}});
  EXPECT_EQ(Run({"rollback", "digits", "--to-version", "4"}).out,
            "model/digits is at v4 already; nothing changed\n");
  aggregator_.On("DELETE /v1/models/digits/pin",
                 {{200, R"({"result":"unpinned","from":4,"to":5})"}});
  EXPECT_EQ(Run({"rollback", "digits", "--unpin"}).out, "model/digits unpinned: v4 -> v5\n");
}

TEST_F(JobsTest, WhatOnlyARegistryCanSaysWhichRegistry) {
  aggregator_.On("GET /v1/status",
                 {{200, R"({"id":"x","model":"digits","registry":"file:///srv/registry"})"}});
  const CommandResult result = Run({"models", "verify", "digits"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("--registry file:///srv/registry"));
}

TEST_F(JobsTest, CompletionOffersLiveNames) {
  aggregator_.On("GET /v1/jobs",
                 {{200, R"({"revision":7,"jobs":[)" + Job(7, 5, "Progressing") + "]}"}});
  runner_.environment = {{"FL_AGGREGATOR", aggregator_.url()}};
  EXPECT_EQ(runner_.Run({"__complete", "--insecure", "wait", "d"}).out, "digits\n:4\n");
  EXPECT_EQ(runner_.Run({"__complete", "--insecure", "get", "job", ""}).out, "digits\n:4\n");
  EXPECT_EQ(runner_.Run({"__complete", "--insecure", "wait", "x"}).out, ":4\n");
  // Nobody there: no names, and no noise.
  runner_.environment = {{"FL_AGGREGATOR", "http://127.0.0.1:1"}};
  const CommandResult nothing = runner_.Run({"__complete", "--insecure", "wait", ""});
  EXPECT_EQ(nothing.out, ":4\n");
  EXPECT_EQ(nothing.err, "");
}

}  // namespace
}  // namespace fl::cli
