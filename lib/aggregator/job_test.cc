#include "aggregator/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace fl::aggregator {
namespace {

using Action = CollectDecision::Action;

Round MakeRound(int64_t selected, int64_t accepted, int64_t rejected) {
  Round round;
  round.selected = selected;
  round.accepted = accepted;
  round.rejected = rejected;
  return round;
}

TEST(CollectDecision, ClosesWhenAllAnsweredOrAtDeadlineWithQuorum) {
  struct Case {
    int64_t selected, accepted, rejected, quorum;
    bool deadline;
    Action want;
  };
  for (const Case& c : std::vector<Case>{
           {4, 0, 0, 2, false, Action::kWait},
           {4, 2, 0, 2, false, Action::kWait},  // more may come before the deadline
           {4, 2, 0, 2, true, Action::kClose},
           {4, 1, 0, 2, true, Action::kMiss},
           {4, 4, 0, 2, false, Action::kClose},  // all have answered
           {4, 2, 2, 2, false, Action::kClose},
           {4, 1, 3, 2, false, Action::kMiss},
           {4, 1, 2, 2, false, Action::kWait},  // the last one can still make it
           {4, 0, 3, 2, false, Action::kMiss},  // it cannot
           {1, 0, 0, 2, false, Action::kMiss},  // never could
           {0, 0, 0, 0, false, Action::kMiss},
           {4, 0, 0, 0, true, Action::kMiss},
       }) {
    EXPECT_EQ(Decide(MakeRound(c.selected, c.accepted, c.rejected), c.quorum, c.deadline).action,
              c.want)
        << c.selected << " " << c.accepted << " " << c.rejected << " " << c.quorum << " "
        << c.deadline;
  }
}

spec::Convergence Rule(std::optional<std::string> target, std::optional<int64_t> patience,
                       spec::ConvergenceMode mode = spec::ConvergenceMode::kMax) {
  spec::Convergence rule;
  rule.metric = "m";
  rule.mode = mode;
  if (target) rule.target = *spec::Fraction::Parse(*target);
  rule.patience = patience;
  rule.min_delta = *spec::Fraction::Parse("0.01");
  return rule;
}

TEST(Convergence, TargetAndPatience) {
  EXPECT_FALSE(Decide(Rule("0.9", {}), {}).converged);
  EXPECT_FALSE(Decide(Rule("0.9", {}), {0.95, 0.89}).converged);
  EXPECT_TRUE(Decide(Rule("0.9", {}), {0.5, 0.9}).converged);
  EXPECT_TRUE(Decide(Rule("0.1", {}, spec::ConvergenceMode::kMin), {0.5, 0.1}).converged);
  EXPECT_FALSE(Decide(Rule({}, 2), {0.5, 0.6, 0.6}).converged);
  EXPECT_TRUE(Decide(Rule({}, 2), {0.5, 0.6, 0.605, 0.6}).converged);
  EXPECT_FALSE(Decide(Rule({}, 2), {0.5, 0.6, 0.6, 0.62}).converged);
}

TEST(JobState, EventsThatCannotFollowAreRefused) {
  JobState job;
  EXPECT_THAT(job.Apply({base::Time(), RoundClosed{"x"}}), base::StatusIs(base::Code::kDataLoss));
  const std::string object =
      R"({"apiVersion":"kubefl.dev/v1alpha1","kind":"FederatedLearningJob","metadata":{"name":"j"},)"
      R"("spec":{"modelRef":{"name":"m"},"rounds":1,"trainer":{"builtin":"mlp"}}})";
  ASSERT_THAT(job.Apply({base::Time(), JobConfigured{object, {}, 1}}), base::IsOk());
  EXPECT_EQ(job.Next(), Step::kStart);
  ASSERT_THAT(job.Apply({base::Time(), JobStarted{base::VersionNumber(0)}}), base::IsOk());
  EXPECT_EQ(job.Next(), Step::kSelect);
  EXPECT_THAT(job.Check({base::Time(), RoundStarted{base::RoundNumber(2), 0, {}, {}}}),
              base::StatusIs(base::Code::kDataLoss));
  ASSERT_THAT(
      job.Apply({base::Time(), RoundStarted{base::RoundNumber(1), 0, {base::ClientName("a")}, {}}}),
      base::IsOk());
  EXPECT_THAT(job.Check({base::Time(), UpdateAccepted{base::ClientName("b"), {}, 0, 0, 0, {}}}),
              base::StatusIs(base::Code::kDataLoss));
  EXPECT_THAT(job.Check({base::Time(), RoundPublished{base::VersionNumber(1)}}),
              base::StatusIs(base::Code::kDataLoss));
}

}  // namespace
}  // namespace fl::aggregator
