#include "aggregator/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "aggregator/testing/federation_fixture.h"
#include "base/failpoint.h"
#include "base/testing/status_matchers.h"

namespace fl::aggregator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Body(const transport::Response& response) {
  return std::get<std::string>(response.body);
}

class EngineTest : public ::testing::Test {
 protected:
  /// All clients answer the running round with {w, w}.
  void AnswerAll(float w) {
    for (const std::string& client : f.connected) {
      if (f.TaskOf(client).empty()) continue;
      EXPECT_EQ(f.Upload(client, w, w).status, 200);
    }
  }
  FederationFixture f;
};

TEST_F(EngineTest, TrainsToTheEnd) {
  f.AddClients(2);
  f.Submit();
  f.engine->Step();
  EXPECT_EQ(f.TaskOf("a"), "train job round 1 attempt 0");
  EXPECT_EQ(f.Upload("a", 2, 4, 1).status, 200);
  EXPECT_EQ(f.TaskOf("a"), "");
  EXPECT_EQ(f.Upload("b", 6, 8, 3).status, 200);
  f.engine->Step();
  EXPECT_THAT(f.Weights(1), ElementsAre(5, 7));
  EXPECT_EQ(f.TaskOf("b"), "train job round 2 attempt 0");
  AnswerAll(1);
  f.engine->Step();
  ASSERT_TRUE(f.job().finished());
  EXPECT_EQ(f.job().finished()->reason, "RoundsCompleted");
  EXPECT_EQ(f.Versions(), 2);
  EXPECT_FALSE(std::filesystem::exists(f.folder / "state" / "spool" / "job"));
  const auto version = f.core->repository->Get(base::VersionNumber(1));
  EXPECT_EQ(version->contributors, 2);
  EXPECT_EQ(version->round, base::RoundNumber(1));
  const auto ending = f.core->repository->FindFinishedJob(base::JobName("job"));
  EXPECT_EQ((*ending)->outcome, "Succeeded");
}

TEST_F(EngineTest, B01_AllZeroWeightsLeaveTheModelByteForByte) {
  f.AddClients(2);
  f.Submit([](auto& job) { job.spec.round_policy.on_missed_quorum = spec::OnMissedQuorum::kFail; });
  const base::Digest before = f.core->repository->Latest()->weights;
  f.engine->Step();
  EXPECT_EQ(f.Upload("a", 1, 2, 0).status, 200);
  EXPECT_EQ(f.Upload("b", 3, 4, 0).status, 200);
  f.engine->Step();
  ASSERT_TRUE(f.job().finished());
  EXPECT_FALSE(f.job().finished()->succeeded);
  EXPECT_THAT(f.job().finished()->message, HasSubstr("weight"));
  EXPECT_EQ(f.core->repository->Latest()->weights, before);
  EXPECT_EQ(f.Versions(), 0);
}

TEST_F(EngineTest, B01_AClientWithoutSamplesContributesNothing) {
  f.AddClients(2);
  f.Submit();
  f.engine->Step();
  EXPECT_EQ(f.Upload("a", 1, 2, 0).status, 200);
  EXPECT_EQ(f.Upload("b", 3, 4, 10).status, 200);
  f.engine->Step();
  EXPECT_THAT(f.Weights(1), ElementsAre(3, 4));
  EXPECT_EQ(f.core->repository->Get(base::VersionNumber(1))->contributors, 1);
}

TEST_F(EngineTest, B11_TheDeadlineFiresByItself) {
  f.AddClients(2);
  f.Submit([](auto& job) { job.spec.selection.quorum = 1; });
  f.engine->Step();
  EXPECT_EQ(f.Upload("a", 3, 3).status, 200);
  std::optional<base::Instant> wake = f.engine->Step();
  EXPECT_EQ(f.job().rounds_done(), 0);
  ASSERT_TRUE(wake);
  EXPECT_EQ(*wake, f.clock.Monotonic() + std::chrono::seconds(60));
  f.clock.Advance(std::chrono::seconds(60));
  f.engine->Step();
  EXPECT_EQ(f.job().rounds_done(), 1);
  EXPECT_THAT(f.Weights(1), ElementsAre(3, 3));
  // The straggler is told which round it is now.
  EXPECT_EQ(f.job().rounds().front().message, "deadline: 1 of 2 updates (quorum 1)");
}

TEST_F(EngineTest, B11_AllDeadEndsWithAReasonAndTheLastGoodModel) {
  f.AddClients(2);
  f.Submit();
  f.engine->Step();
  f.Disconnect("a");
  f.Disconnect("b");
  for (int i = 0; i < 20 && !f.job().finished(); ++i) {
    f.clock.Advance(std::chrono::seconds(30));
    f.engine->Step();
  }
  ASSERT_TRUE(f.job().finished());
  EXPECT_EQ(f.job().finished()->reason, "QuorumMissed");
  EXPECT_THAT(f.job().finished()->message, HasSubstr("connected"));
  EXPECT_EQ(f.Versions(), 0);
}

TEST_F(EngineTest, WaitsForClientsThatAreExpected) {
  f.AddClients(2);
  f.Disconnect("b");
  f.Submit();
  f.engine->Step();
  EXPECT_EQ(f.TaskOf("a"), "");
  f.clock.Advance(std::chrono::seconds(9));
  f.engine->Step();
  EXPECT_EQ(f.TaskOf("a"), "");
  f.clock.Advance(std::chrono::seconds(1));
  f.engine->Step();
  // Absent for ten seconds: the round goes on without it.
  EXPECT_EQ(f.TaskOf("a"), "train job round 1 attempt 0");
  EXPECT_EQ(f.job().current()->selected, 1);
}

TEST_F(EngineTest, B14_AClientThatIsNotThereDoesNotCount) {
  f.AddClients(1);
  f.Submit([](auto& job) {
    job.spec.selection.clients_per_round = 2;
    job.spec.selection.quorum = 2;
  });
  f.engine->Step();
  f.clock.Advance(std::chrono::seconds(11));
  f.engine->Step();
  EXPECT_EQ(f.TaskOf("a"), "");
  EXPECT_EQ(f.job().current(), nullptr);
  EXPECT_THAT(f.core->FindJob(base::JobName("job"))->blocked,
              HasSubstr("1 of the 2 clients that a round needs"));
}

TEST_F(EngineTest, AMissedQuorumIsRetriedAndThenFails) {
  f.AddClients(2);
  f.Submit();
  f.engine->Step();
  f.Fail("a", "the program crashed");
  f.engine->Step();
  EXPECT_EQ(f.TaskOf("b"), "train job round 1 attempt 1");
  f.Fail("b", "out of memory");
  f.engine->Step();
  ASSERT_TRUE(f.job().finished());
  EXPECT_EQ(f.job().finished()->reason, "QuorumMissed");
  // An administrator tries again: the round goes on where it was.
  f.Retry();
  f.engine->Step();
  EXPECT_EQ(f.TaskOf("a"), "train job round 1 attempt 2");
  AnswerAll(4);
  f.engine->Step();
  EXPECT_EQ(f.job().rounds_done(), 1);
}

TEST_F(EngineTest, PauseKeepsWhatWasAcceptedAndResumeGoesOn) {
  f.AddClients(2);
  f.Submit();
  f.engine->Step();
  EXPECT_EQ(f.Upload("a", 3, 3).status, 200);
  f.SetSuspend(true);
  f.engine->Step();
  EXPECT_EQ(f.TaskOf("b"), "");
  f.clock.Advance(std::chrono::hours(1));
  f.engine->Step();
  EXPECT_EQ(f.job().rounds_done(), 0);
  f.SetSuspend(false);
  f.engine->Step();
  EXPECT_EQ(f.TaskOf("b"), "train job round 1 attempt 0");
  EXPECT_EQ(f.Upload("b", 5, 5).status, 200);
  f.engine->Step();
  EXPECT_THAT(f.Weights(1), ElementsAre(4, 4));
}

TEST_F(EngineTest, AbortEndsTheRoundAndKeepsTheModel) {
  f.AddClients(2);
  f.Submit();
  f.engine->Step();
  f.SetAborted();
  f.engine->Step();
  EXPECT_EQ(f.job().finished()->reason, "Aborted");
  EXPECT_EQ(f.TaskOf("a"), "");
  EXPECT_EQ(f.Upload("a", 1, 1).status, 409);
  EXPECT_EQ(f.Versions(), 0);
}

TEST_F(EngineTest, ConvergenceEndsEarly) {
  f.AddClients(1);
  f.Submit([](auto& job) {
    job.spec.rounds = 50;
    job.spec.evaluation.test_dataset = "file:test.csv";
    job.spec.convergence =
        spec::Convergence{.metric = "accuracy", .mode = spec::ConvergenceMode::kMax, .patience = 2};
  });
  for (int i = 0; i < 10 && !f.job().finished(); ++i) {
    f.engine->Step();
    AnswerAll(1);
  }
  ASSERT_TRUE(f.job().finished());
  EXPECT_EQ(f.job().finished()->reason, "Converged");
  EXPECT_EQ(f.job().rounds_done(), 3);
}

TEST_F(EngineTest, WrongUpdatesCostTheirSenderOnly) {
  f.AddClients(2);
  f.Submit([](auto& job) { job.spec.selection.quorum = 1; });
  f.engine->Step();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const transport::Response refused = f.Upload("a", nan, 1);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(Body(refused), HasSubstr("tensor \\\"w\\\""));
  EXPECT_EQ(f.Upload("b", 2, 2).status, 200);
  f.engine->Step();
  EXPECT_THAT(f.Weights(1), ElementsAre(2, 2));
  EXPECT_EQ(f.job().rounds().front().rejected, 1);
}

TEST_F(EngineTest, ARejectedClientMayMendItsUpdateWhileTheRoundIsOpen) {
  f.AddClients(2);
  f.Submit([](auto& job) { job.spec.selection.quorum = 1; });
  f.engine->Step();
  EXPECT_EQ(f.UploadBytes("a", "this is no safetensors file").status, 400);
  EXPECT_EQ(f.job().current()->rejected, 1);
  EXPECT_EQ(f.Upload("a", 4, 4).status, 200);
  EXPECT_EQ(f.job().current()->rejected, 0);
  EXPECT_EQ(f.job().current()->accepted, 1);
}

TEST_F(EngineTest, TheSameBytesSucceedAgainOthersDoNot) {
  f.AddClients(2);
  f.Submit();
  f.engine->Step();
  EXPECT_EQ(f.Upload("a", 3, 3).status, 200);
  EXPECT_EQ(f.Upload("a", 3, 3).status, 200);
  EXPECT_EQ(f.Upload("a", 9, 9).status, 409);
  EXPECT_EQ(f.job().current()->accepted, 1);
}

TEST_F(EngineTest, ADigestThatDoesNotMatchIsNoUpdate) {
  f.AddClients(2);
  f.Submit();
  f.engine->Step();
  const std::string bytes = f.UpdateBytes(3, 3);
  const transport::Response refused =
      f.UploadBytes("a", bytes, 1, base::Digest::Of(std::string_view("other")));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(f.job().current()->accepted, 0);
  EXPECT_EQ(f.job().current()->rejected, 0);
  EXPECT_EQ(f.Upload("a", 3, 3).status, 200);
}

TEST_F(EngineTest, B16_ADiskThatIsFullIsAnErrorAndNothingIsLost) {
  f.AddClients(1);
  f.Submit([](auto& job) { job.spec.rounds = 1; });
  f.engine->Step();
  const std::string update = f.UpdateBytes(3, 3);
  base::ArmFailpoints("file.write=nospace");
  EXPECT_EQ(f.UploadBytes("a", update).status, 507);
  base::ArmFailpoints("");
  EXPECT_EQ(f.UploadBytes("a", update).status, 200);
  base::ArmFailpoints("file.write=nospace");
  f.engine->Step();
  base::ArmFailpoints("");
  EXPECT_EQ(f.Versions(), 0);
  EXPECT_FALSE(f.job().finished());
  f.clock.Advance(std::chrono::minutes(1));
  f.engine->Step();
  EXPECT_EQ(f.Versions(), 1);
  EXPECT_TRUE(f.job().finished()->succeeded);
}

TEST_F(EngineTest, EvaluationThatFailsIsSaidAndDoesNotStopTraining) {
  f.evaluator = [](const auto&, const auto&, auto) {
    return base::Result<std::map<std::string, double>>(base::NotFound("no test.csv"));
  };
  f.Restart();
  f.AddClients(1);
  f.Submit([](auto& job) {
    job.spec.rounds = 1;
    job.spec.evaluation.test_dataset = "file:test.csv";
  });
  f.engine->Step();
  AnswerAll(1);
  f.engine->Step();
  EXPECT_TRUE(f.job().finished()->succeeded);
  EXPECT_THAT(f.job().rounds().front().message, HasSubstr("no test.csv"));
}

TEST_F(EngineTest, ClientsEvaluateTheCandidateBeforeItIsPublished) {
  f.AddClients(2);
  f.Submit([](auto& job) {
    job.spec.rounds = 1;
    job.spec.evaluation.clients = spec::EvaluationClients::kAll;
  });
  f.engine->Step();
  AnswerAll(6);
  f.engine->Step();
  EXPECT_EQ(f.TaskOf("a"), "evaluate job round 1 attempt 0");
  EXPECT_EQ(f.Versions(), 0);
  f.core->evaluation->waiting.clear();
  f.core->evaluation->reports[base::ClientName("a")] = {0, 30, {{"accuracy", 0.5}}};
  f.core->evaluation->reports[base::ClientName("b")] = {0, 10, {{"accuracy", 0.9}}};
  f.engine->Step();
  EXPECT_EQ(f.Versions(), 1);
  EXPECT_DOUBLE_EQ(f.job().metrics().at("accuracy"), 0.6);
}

TEST_F(EngineTest, EvaluationWaitsForClientsBetweenTwoPollsAndNotForThoseThatWentAway) {
  f.AddClients(2);
  f.Submit([](auto& job) {
    job.spec.rounds = 1;
    job.spec.evaluation.clients = spec::EvaluationClients::kAll;
  });
  f.engine->Step();
  AnswerAll(6);
  f.Disconnect("a");  // its poll is answered, the next has not come yet
  f.Disconnect("b");
  f.engine->Step();
  EXPECT_EQ(f.TaskOf("a"), "evaluate job round 1 attempt 0");
  f.Connect("a");
  f.core->evaluation->waiting.erase(base::ClientName("a"));
  f.core->evaluation->reports[base::ClientName("a")] = {0, 30, {{"accuracy", 0.5}}};
  f.engine->Step();
  EXPECT_EQ(f.Versions(), 0);  // b may come back
  f.clock.Advance(std::chrono::seconds(10));
  f.engine->Step();
  EXPECT_EQ(f.Versions(), 1);
  EXPECT_DOUBLE_EQ(f.job().metrics().at("accuracy"), 0.5);
}

// Every place where the daemon can die: it is dropped there, opened again, and must come to the
// same bits as a daemon that never died.
class RestartTest : public EngineTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(RestartTest, GoesOnToTheSameBits) {
  const auto run = [&](FederationFixture& at, const std::string& fail) {
    at.AddClients(3);
    at.Submit([](auto& job) {
      job.spec.aggregation.algorithm = "FedAdam";
      job.spec.selection.clients_per_round = 2;
      job.spec.evaluation.test_dataset = "file:test.csv";
    });
    base::ArmFailpoints(fail);
    for (int i = 0; i < 30 && !at.job().finished(); ++i) {
      at.engine->Step();
      for (const std::string client : {"a", "b", "c"}) {
        if (at.TaskOf(client).empty()) continue;
        const float w = static_cast<float>(client[0] - 'a' + 1);
        at.Upload(client, w, 0.5f * w, client[0] - 'a' + 1);
      }
      if (!fail.empty()) at.Restart();
      at.clock.Advance(std::chrono::seconds(5));
    }
    base::ArmFailpoints("");
    ASSERT_TRUE(at.job().finished()) << "at " << fail;
    EXPECT_TRUE(at.job().finished()->succeeded) << at.job().finished()->message;
  };
  FederationFixture undisturbed;
  run(undisturbed, "");
  run(f, GetParam());
  ASSERT_EQ(f.Versions(), undisturbed.Versions());
  for (int64_t version = 1; version <= f.Versions(); ++version) {
    EXPECT_EQ(f.core->repository->Get(base::VersionNumber(version))->weights,
              undisturbed.core->repository->Get(base::VersionNumber(version))->weights);
    EXPECT_EQ(f.core->repository->Get(base::VersionNumber(version))->state,
              undisturbed.core->repository->Get(base::VersionNumber(version))->state);
  }
  EXPECT_THAT(f.core->repository->Verify()->problems, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(EveryStep, RestartTest,
                         ::testing::Values("none=error", "journal.append#3=error",
                                           "journal.append#4=error", "journal.append#6=error",
                                           "journal.append#7=error", "journal.append#8=error",
                                           "update.commit=error", "update.journal=error",
                                           "update.answer=error", "engine.aggregate=error",
                                           "engine.publish=error", "engine.published=error"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

}  // namespace
}  // namespace fl::aggregator
