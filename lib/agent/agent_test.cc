/// Whole agents against a real server over TLS; only what trains is the test's.

#include "agent/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "agent/testing/fakes.h"
#include "agent/testing/scripted_aggregator.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"
#include "transport/testing/cut_proxy.h"
#include "wire/paths.h"

namespace fl::agent {
namespace {

using base::IsOk;
using base::Result;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using trainer::TaskResult;

const base::ClientName kClient("hospital-a");

class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    FL_CHECK(base::MakeDirectories(folder_ / "server").ok());
    StartAggregator();
    AddClient(kClient);
    model_ = aggregator_->AddBlob("the model");
  }
  ~AgentTest() override { StopAgent(); }

  void StartAggregator(int port = 0) {
    aggregator_ = std::make_unique<ScriptedAggregator>(folder_ / "server", port);
    for (const ClientConfig& client : clients_) {
      aggregator_->AddClient(client.client,
                             base::PrivateKey::Load(client.key_file).value().public_key());
    }
  }
  void AddClient(const base::ClientName& client) {
    const base::PrivateKey key = base::PrivateKey::Generate(base::KeyType::kEd25519).value();
    const base::Path file = folder_ / (client.str() + ".key");
    FL_CHECK(base::WriteFileAtomically(file, key.ToPem(), 0600).ok());
    clients_.push_back({.client = client, .key_file = file, .dataset = "file:/data.csv"});
    aggregator_->AddClient(client, key.public_key());
  }

  /// The agent's connections go through `proxy_` from here on.
  void UseProxy() { proxy_ = transport::CutProxy::Start(aggregator_->port()).value(); }

  AgentDependencies Dependencies() {
    AgentDependencies dependencies;
    dependencies.seams.sleeper = [this](base::Duration duration, const std::stop_token& stop) {
      if (on_sleep_) on_sleep_();
      return transport::SleepFor(duration, stop);
    };
    dependencies.make_trainer =
        [this](const std::string& name, const TrainerConfig*,
               const base::Path&) -> Result<std::unique_ptr<trainer::Trainer>> {
      {
        const std::lock_guard lock(mutex_);
        trainers_made_.push_back(name);
      }
      return std::unique_ptr<trainer::Trainer>(std::make_unique<FunctionTrainer>(
          [this](const trainer::Task& task, const std::stop_token& stop) {
            ++trained_;
            return train_(task, stop);
          }));
    };
    return dependencies;
  }

  Config AgentConfig() {
    FL_CHECK(base::WriteFileAtomically(folder_ / "ca.crt", aggregator_->ca_pem()).ok());
    return {.aggregator =
                proxy_ ? "https://127.0.0.1:" + std::to_string(proxy_->port()) : aggregator_->url(),
            .ca_file = folder_ / "ca.crt",
            .work_dir = folder_ / "work",
            .clients = clients_,
            .trainers = {{"mine", {.command = {"mine"}}}},
            .require = require_};
  }

  /// Starts the agents; what they train with is `train_`.
  void StartAgent() {
    stop_ = std::stop_source();
    agent_ = std::jthread([this, config = AgentConfig(), dependencies = Dependencies()] {
      EXPECT_THAT(RunAgents(config, stop_.get_token(), dependencies), IsOk());
    });
  }
  void StopAgent() {
    stop_.request_stop();
    if (agent_.joinable()) agent_.join();
  }

  wire::Task Task(int64_t round = 1, wire::TaskKind kind = wire::TaskKind::kTrain) {
    wire::Task task;
    task.kind = kind;
    task.job = base::JobName("digits");
    task.round = base::RoundNumber(round);
    task.deadline_seconds = 600;
    task.seed = 7;
    task.model = model_;
    task.model_size = std::string("the model").size();
    task.named_trainer = "mine";
    task.config = R"({"learningRate":0.5})";
    task.mu = 0.25;
    return task;
  }

  static Result<TaskResult> WriteWeights(const trainer::Task& task) {
    FL_ASSIGN_OR_RETURN(const std::string model, base::ReadFile(task.model));
    if (!task.output.empty()) {
      FL_RETURN_IF_ERROR(base::WriteFileAtomically(
          task.output, model + " after round " + std::to_string(task.round.value())));
    }
    return TaskResult{.num_samples = 100, .num_steps = 10, .metrics = {{"loss", 0.5}}};
  }

  const base::TemporaryDirectory folder_;
  std::vector<ClientConfig> clients_;
  std::unique_ptr<ScriptedAggregator> aggregator_;
  base::Digest model_;
  Floors require_;
  std::function<Result<TaskResult>(const trainer::Task&, const std::stop_token&)> train_ =
      [](const trainer::Task& task, const std::stop_token&) { return WriteWeights(task); };
  std::function<void()> on_sleep_;
  std::unique_ptr<transport::CutProxy> proxy_;
  std::atomic<int> trained_{0};
  std::mutex mutex_;
  std::vector<std::string> trainers_made_;  // guarded by mutex_ while agents run
  std::stop_source stop_;
  std::jthread agent_;
};

TEST_F(AgentTest, TrainsAndSendsOneUpdateARound) {
  std::vector<trainer::Task> seen;
  train_ = [&](const trainer::Task& task, const std::stop_token&) {
    seen.push_back(task);
    return WriteWeights(task);
  };
  StartAgent();
  for (int64_t round = 1; round <= 3; ++round) {
    aggregator_->SetTask(kClient, Task(round));
    const ScriptedAggregator::Received update =
        aggregator_->WaitFor("/updates/", static_cast<size_t>(round));
    EXPECT_EQ(update.path,
              "/v1/jobs/digits/rounds/" + std::to_string(round) + "/updates/hospital-a");
    EXPECT_EQ(update.body, "the model after round " + std::to_string(round));
    EXPECT_EQ(update.headers.Get(wire::kReprDigest), base::Digest::Of(update.body).ToReprDigest());
    EXPECT_EQ(update.headers.Get(wire::kSamples), "100");
    EXPECT_EQ(update.headers.Get(wire::kSteps), "10");
    aggregator_->WaitForPoll(kClient, /*busy=*/false);
  }
  StopAgent();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].seed, 7u);
  EXPECT_EQ(seen[0].mu, 0.25);
  EXPECT_EQ(seen[0].config, R"({"learningRate":0.5})");
  EXPECT_EQ(seen[0].dataset, "file:/data.csv");
  EXPECT_EQ(seen[0].client, kClient);
  EXPECT_EQ(aggregator_->blob_requests(), 1);        // the model was there the second time
  EXPECT_THAT(trainers_made_, ElementsAre("mine"));  // and the trainer is the same one
  EXPECT_FALSE(std::filesystem::exists(folder_ / "work/hospital-a/update.safetensors"));
}

TEST_F(AgentTest, EvaluatesAndSendsMetrics) {
  StartAgent();
  aggregator_->SetTask(kClient, Task(2, wire::TaskKind::kEvaluate));
  const ScriptedAggregator::Received sent = aggregator_->WaitFor("/rounds/2/evaluations/");
  ASSERT_OK_AND_ASSIGN(const wire::EvaluationReport report,
                       wire::EvaluationReportFromJson(sent.body));
  EXPECT_EQ(report.samples, 100);
  EXPECT_EQ(report.metrics.at("loss"), 0.5);
}

TEST_F(AgentTest, ATrainerThatFailsIsReported) {
  train_ = [](const trainer::Task& task, const std::stop_token&) -> Result<TaskResult> {
    return base::FailedPrecondition(
        "the trainer ended with exit status 3",
        "look into " + task.result.parent_path().string() + "/trainer-mine.log, " + task.dataset);
  };
  StartAgent();
  aggregator_->SetTask(kClient, Task());
  const ScriptedAggregator::Received sent = aggregator_->WaitFor("/failures/");
  ASSERT_OK_AND_ASSIGN(const wire::FailureReport report, wire::FailureReportFromJson(sent.body));
  // Where files are on this machine is not told.
  EXPECT_EQ(report.reason,
            "the trainer ended with exit status 3; look into hospital-a/trainer-mine.log, "
            "file:data.csv");
  EXPECT_EQ(aggregator_->Count("/updates/"), 0u);
}

TEST_F(AgentTest, ATrainerThatIsNotHereIsReported) {
  StartAgent();
  wire::Task task = Task();
  task.named_trainer = "rm -rf";
  aggregator_->SetTask(kClient, task);
  EXPECT_THAT(aggregator_->WaitFor("/failures/").body,
              AllOf(HasSubstr("has no trainer"), HasSubstr("it has: mine")));
  EXPECT_EQ(trained_, 0);
}

TEST_F(AgentTest, FloorsAreNotLoweredByATask) {
  require_.secure_aggregation = true;
  StartAgent();
  aggregator_->SetTask(kClient, Task());
  EXPECT_THAT(aggregator_->WaitFor("/failures/").body, HasSubstr("demands secure aggregation"));
  EXPECT_EQ(trained_, 0);
  EXPECT_EQ(aggregator_->blob_requests(), 0);
}

TEST_F(AgentTest, ARoundThatIsOverCallsTheTrainingOff) {
  std::promise<void> training;
  train_ = [&](const trainer::Task& task, const std::stop_token& stop) -> Result<TaskResult> {
    if (task.round == base::RoundNumber(2)) return WriteWeights(task);
    std::promise<void> stopped;
    const std::stop_callback on_stop(stop, [&] { stopped.set_value(); });
    training.set_value();
    stopped.get_future().wait();
    return base::Cancelled("stopped");
  };
  StartAgent();
  aggregator_->SetTask(kClient, Task(1));
  training.get_future().wait();
  aggregator_->WaitForPoll(kClient, /*busy=*/true);  // the heartbeat goes on meanwhile
  aggregator_->SetTask(kClient, Task(2));            // straight from one to the next
  EXPECT_EQ(aggregator_->WaitFor("/updates/").body, "the model after round 2");
  EXPECT_EQ(aggregator_->Count("/rounds/1/"), 0u);
}

TEST_F(AgentTest, ATaskThatIsTakenBackLeavesTheAgentIdle) {
  std::promise<void> training;
  train_ = [&](const trainer::Task&, const std::stop_token& stop) -> Result<TaskResult> {
    std::promise<void> stopped;
    const std::stop_callback on_stop(stop, [&] { stopped.set_value(); });
    training.set_value();
    stopped.get_future().wait();
    return base::Cancelled("stopped");
  };
  StartAgent();
  aggregator_->SetTask(kClient, Task(1));
  training.get_future().wait();
  aggregator_->WaitForPoll(kClient, /*busy=*/true);
  aggregator_->SetTask(kClient, std::nullopt);
  aggregator_->WaitForPoll(kClient, /*busy=*/false);
  EXPECT_EQ(aggregator_->Count("/rounds/"), 0u);
}

TEST_F(AgentTest, StopsSoonWhileTraining) {
  std::promise<void> training;
  train_ = [&](const trainer::Task&, const std::stop_token& stop) -> Result<TaskResult> {
    std::promise<void> stopped;
    const std::stop_callback on_stop(stop, [&] { stopped.set_value(); });
    training.set_value();
    stopped.get_future().wait();
    return base::Cancelled("stopped");
  };
  StartAgent();
  aggregator_->SetTask(kClient, Task());
  training.get_future().wait();
  StopAgent();
  EXPECT_EQ(aggregator_->Count("/rounds/"), 0u);
}

TEST_F(AgentTest, ALateUpdateIsDropped) {
  aggregator_->AnswerUpdates({409});
  StartAgent();
  aggregator_->SetTask(kClient, Task(1));
  aggregator_->WaitFor("/updates/");
  aggregator_->WaitForPoll(kClient, /*busy=*/false);
  EXPECT_EQ(aggregator_->Count("/failures/"), 0u);
  EXPECT_EQ(aggregator_->Count("/updates/"), 1u);
  aggregator_->SetTask(kClient, Task(2));
  EXPECT_EQ(aggregator_->WaitFor("/updates/", 2).body, "the model after round 2");
}

TEST_F(AgentTest, ARefusedUpdateIsReported) {
  aggregator_->AnswerUpdates({400});
  StartAgent();
  aggregator_->SetTask(kClient, Task());
  EXPECT_THAT(aggregator_->WaitFor("/failures/").body,
              AllOf(HasSubstr("refused"), HasSubstr("as the test says")));
  EXPECT_EQ(aggregator_->Count("/updates/"), 1u);
}

TEST_F(AgentTest, TheSameBytesAreSentAgainWithoutTrainingAgain) {
  aggregator_->AnswerUpdates({500, 503, 500});
  StartAgent();
  aggregator_->SetTask(kClient, Task());
  const std::string first = aggregator_->WaitFor("/updates/", 1).body;
  EXPECT_EQ(aggregator_->WaitFor("/updates/", 4).body, first);
  EXPECT_EQ(trained_, 1);
}

TEST_F(AgentTest, ARestartedAgentSendsWhatWasReady) {
  // Each training gives other bytes, so that another one would be noticed.
  train_ = [&](const trainer::Task& task, const std::stop_token&) -> Result<TaskResult> {
    FL_RETURN_IF_ERROR(
        base::WriteFileAtomically(task.output, "training " + std::to_string(trained_)));
    return TaskResult{.num_samples = 1, .num_steps = 1};
  };
  aggregator_->AnswerUpdates(std::deque<int>(1000, 503));
  StartAgent();
  aggregator_->SetTask(kClient, Task(1));
  EXPECT_EQ(aggregator_->WaitFor("/updates/", 1).body, "training 1");
  StopAgent();
  aggregator_->AnswerUpdates({});
  const size_t before = aggregator_->Count("/updates/");
  StartAgent();
  EXPECT_EQ(aggregator_->WaitFor("/updates/", before + 1).body, "training 1");
  EXPECT_EQ(trained_, 1);
  aggregator_->WaitForPoll(kClient, /*busy=*/false);
  aggregator_->SetTask(kClient, Task(2));  // another task is trained for
  EXPECT_EQ(aggregator_->WaitFor("/updates/", before + 2).body, "training 2");
}

TEST_F(AgentTest, AnUpdateThatWasCutWhileWrittenIsTrainedAgain) {
  aggregator_->AnswerUpdates(std::deque<int>(1000, 503));
  StartAgent();
  aggregator_->SetTask(kClient, Task(1));
  const std::string whole = aggregator_->WaitFor("/updates/", 1).body;
  StopAgent();
  ASSERT_THAT(
      base::WriteFileAtomically(folder_ / "work/hospital-a/update.safetensors", whole.substr(0, 5)),
      IsOk());
  aggregator_->AnswerUpdates({});
  const size_t before = aggregator_->Count("/updates/");
  StartAgent();
  EXPECT_EQ(aggregator_->WaitFor("/updates/", before + 1).body, whole);
  EXPECT_EQ(trained_, 2);
}

TEST_F(AgentTest, AForgottenSessionCostsNothing) {
  StartAgent();
  aggregator_->WaitForPoll(kClient, /*busy=*/false);
  train_ = [&](const trainer::Task& task, const std::stop_token&) {
    aggregator_->ForgetSessions();  // while training, as when the aggregator restarts
    return WriteWeights(task);
  };
  aggregator_->SetTask(kClient, Task());
  EXPECT_EQ(aggregator_->WaitFor("/updates/").body, "the model after round 1");
  aggregator_->WaitForSessions(2);
}

TEST_F(AgentTest, B17_AnAgentOutlivesAnAggregatorThatIsNotThere) {
  UseProxy();
  proxy_->FailAll({.cut_after_sent = 0, .reset = true});
  std::atomic<int> sleeps = 0;
  std::promise<void> tried_often;
  on_sleep_ = [&] {
    if (++sleeps == 4) tried_often.set_value();
  };
  StartAgent();
  tried_often.get_future().wait();
  proxy_->Heal();
  aggregator_->SetTask(kClient, Task());
  EXPECT_EQ(aggregator_->WaitFor("/updates/").body, "the model after round 1");
}

TEST_F(AgentTest, ACutUploadIsSentAgainWithTheSameBytes) {
  UseProxy();
  const std::string weights(size_t{2} << 20, 'w');
  train_ = [&](const trainer::Task& task, const std::stop_token&) -> Result<TaskResult> {
    FL_RETURN_IF_ERROR(base::WriteFileAtomically(task.output, weights));
    // The poll and the upload connect anew; uploads break in the middle.
    proxy_->FailNext({.cut_after_sent = 1 << 20, .reset = true}, 3);
    proxy_->CutAll();
    return TaskResult{.num_samples = 1, .num_steps = 1};
  };
  StartAgent();
  aggregator_->SetTask(kClient, Task());
  EXPECT_TRUE(aggregator_->WaitFor("/updates/").body == weights);
  EXPECT_GT(proxy_->bytes_sent(), weights.size() + (1 << 19));  // some of it went twice
  EXPECT_EQ(trained_, 1);
}

TEST_F(AgentTest, AnUpdateWhoseAnswerWasLostIsSentAgain) {
  UseProxy();
  train_ = [&](const trainer::Task& task, const std::stop_token&) -> Result<TaskResult> {
    proxy_->FailAll({.drop_response = true});
    proxy_->CutAll();
    return WriteWeights(task);
  };
  StartAgent();
  aggregator_->EndTasksAfter(2);
  aggregator_->SetTask(kClient, Task());
  const ScriptedAggregator::Received first = aggregator_->WaitFor("/updates/", 1);
  proxy_->Heal();
  const ScriptedAggregator::Received second = aggregator_->WaitFor("/updates/", 2);
  EXPECT_EQ(first.body, second.body);
  EXPECT_EQ(first.headers.Get(wire::kReprDigest), second.headers.Get(wire::kReprDigest));
  EXPECT_EQ(trained_, 1);
}

TEST_F(AgentTest, ACutModelIsFetchedFromWhereItBroke) {
  UseProxy();
  const std::string model(size_t{1} << 20, 'm');
  wire::Task task = Task();
  task.model = aggregator_->AddBlob(model);
  task.model_size = model.size();
  proxy_->FailNext({.cut_after_received = 200 << 10}, 3);
  aggregator_->SetTask(kClient, task);
  StartAgent();
  EXPECT_TRUE(aggregator_->WaitFor("/updates/").body == model + " after round 1");
  const std::vector<std::string> ranges = aggregator_->ranges();
  ASSERT_GE(ranges.size(), 2u);
  EXPECT_EQ(ranges[0], "");
  EXPECT_THAT(ranges[1], testing::MatchesRegex("bytes=[1-9][0-9]*-"));
}

TEST_F(AgentTest, ClientsOfOneProcessFetchAModelOnce) {
  std::vector<base::ClientName> names;
  for (int i = 0; i < 8; ++i) {
    names.emplace_back("site-" + std::to_string(i));
    AddClient(names.back());
  }
  for (const base::ClientName& name : names) aggregator_->SetTask(name, Task());
  StartAgent();
  aggregator_->WaitFor("/updates/", names.size());
  for (const base::ClientName& name : names) {
    EXPECT_EQ(aggregator_->Count("/updates/" + name.str()), 1u);
  }
  EXPECT_EQ(aggregator_->blob_requests(), 1);
}

TEST_F(AgentTest, AWorkFolderHasOneProcess) {
  StartAgent();
  aggregator_->WaitForPoll(kClient, /*busy=*/false);
  EXPECT_THAT(RunAgents(AgentConfig(), {}, Dependencies()),
              base::StatusIs(base::Code::kFailedPrecondition));
}

TEST_F(AgentTest, MissingFilesAreNamed) {
  Config config = AgentConfig();
  config.ca_file = folder_ / "no.crt";
  EXPECT_THAT(RunAgents(config, {}, Dependencies()),
              base::StatusIs(base::Code::kNotFound, HasSubstr("no.crt")));
  config = AgentConfig();
  config.clients[0].key_file = folder_ / "no.key";
  EXPECT_THAT(RunAgents(config, {}, Dependencies()),
              base::StatusIs(base::Code::kNotFound, HasSubstr("no.key")));
}

TEST_F(AgentTest, AKeyIsMadeToJoinWith) {
  ASSERT_THAT(base::WriteFileAtomically(folder_ / "token", "the token\n", 0600), IsOk());
  clients_ = {{.client = kClient, .join_token_file = folder_ / "token"}};
  std::stop_source stop;
  stop.request_stop();
  const base::Path file = folder_ / "work/hospital-a/client.key";
  ASSERT_THAT(RunAgents(AgentConfig(), stop.get_token(), Dependencies()), IsOk());
  ASSERT_OK_AND_ASSIGN(const base::PrivateKey made, base::PrivateKey::Load(file));
  ASSERT_THAT(RunAgents(AgentConfig(), stop.get_token(), Dependencies()), IsOk());
  ASSERT_OK_AND_ASSIGN(const base::PrivateKey kept, base::PrivateKey::Load(file));
  EXPECT_EQ(kept.public_key(), made.public_key());
}

}  // namespace
}  // namespace fl::agent
