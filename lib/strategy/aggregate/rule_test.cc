#include "strategy/aggregate/rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace fl::strategy {
namespace {

using base::Code;
using base::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Rule, DefaultsAreThoseOfTheDesign) {
  ASSERT_OK_AND_ASSIGN(const Rule avg, MakeRule({}));
  EXPECT_EQ(avg.name(), "FedAvg");
  EXPECT_EQ(avg.server_learning_rate(), 1.0);
  EXPECT_FALSE(avg.needs_global());
  EXPECT_FALSE(avg.keeps_state());
  ASSERT_OK_AND_ASSIGN(const Rule momentum, MakeRule({"FedAvgM", {}}));
  EXPECT_EQ(momentum.server_momentum(), 0.9);
  EXPECT_EQ(momentum.server_learning_rate(), 1.0);
  for (const char* name : {"FedAdam", "FedYogi", "FedAdagrad"}) {
    ASSERT_OK_AND_ASSIGN(const Rule rule, MakeRule({name, {}}));
    EXPECT_EQ(rule.server_learning_rate(), 0.1);
    EXPECT_EQ(rule.beta1(), name == std::string("FedAdagrad") ? 0.0 : 0.9);
    EXPECT_EQ(rule.beta2(), 0.99);
    EXPECT_EQ(rule.tau(), 0.001);
    EXPECT_EQ(rule.initial_accumulator(), 0.001 * 0.001);
    EXPECT_FALSE(rule.bias_correction());
    EXPECT_TRUE(rule.needs_global());
    EXPECT_TRUE(rule.keeps_state());
  }
  ASSERT_OK_AND_ASSIGN(const Rule tau, MakeRule({"FedAdam", {{"tau", "0.1"}}}));
  EXPECT_EQ(tau.initial_accumulator(), 0.1 * 0.1);
  ASSERT_OK_AND_ASSIGN(const Rule prox, MakeRule({"FedProx", {{"mu", "0.01"}}}));
  EXPECT_EQ(prox.mu(), 0.01);
  ASSERT_OK_AND_ASSIGN(const Rule nova, MakeRule({"FedNova", {}}));
  EXPECT_TRUE(nova.normalizes_steps());
  EXPECT_TRUE(nova.needs_global());
  ASSERT_OK_AND_ASSIGN(const Rule slow, MakeRule({"FedAvg", {{"serverLearningRate", "0.5"}}}));
  EXPECT_TRUE(slow.needs_global());
}

TEST(Rule, UnknownNamesListTheKnownOnes) {
  EXPECT_THAT(MakeRule({"fedavg", {}}),
              StatusIs(Code::kInvalidArgument,
                       AllOf(HasSubstr("unknown aggregation algorithm \"fedavg\""),
                             HasSubstr("FedAdagrad, FedAdam, FedAvg, FedAvgM, FedNova, FedProx, "
                                       "FedYogi"))));
  for (const char* name : {"Krum", "MultiKrum", "Median", "TrimmedMean", "Bulyan"}) {
    EXPECT_THAT(MakeRule({name, {}}),
                StatusIs(Code::kInvalidArgument, HasSubstr("is not offered yet; offered are Fed")));
  }
  EXPECT_THAT(
      MakeRule({"FedAvg", {{"beta1", "0.9"}}}),
      StatusIs(Code::kInvalidArgument, HasSubstr("FedAvg has no parameter \"beta1\"; it takes "
                                                 "serverLearningRate")));
  EXPECT_THAT(MakeRule({"FedAdagrad", {{"biasCorrection", "true"}}}),
              StatusIs(Code::kInvalidArgument, HasSubstr("has no parameter")));
}

TEST(Rule, B28_NumbersOutOfRangeNeverPass) {
  for (const std::string text :
       {"nan",    "NaN",   "-nan",   ".nan", "inf", "-inf", "Infinity", ".inf",
        "1e-400", "1e400", "-1e400", "",     " ",   "1 ",   " 1",       "1,5",
        "1.0x",   "0x10",  "+1",     "one",  "1e",  "--1",  "true"}) {
    for (const char* name : {"serverLearningRate", "beta1", "beta2", "tau", "initialAccumulator"}) {
      EXPECT_THAT(MakeRule({"FedAdam", {{name, text}}}),
                  StatusIs(Code::kInvalidArgument,
                           AllOf(HasSubstr(std::string(name)), HasSubstr("\"" + text + "\""))))
          << name << " " << text;
    }
  }
  for (const auto& [algorithm, name, text] :
       std::initializer_list<std::tuple<std::string, std::string, std::string>>{
           {"FedAvg", "serverLearningRate", "0"},
           {"FedAvg", "serverLearningRate", "-1"},
           {"FedAvgM", "serverMomentum", "1"},
           {"FedAvgM", "serverMomentum", "-0.1"},
           {"FedAdam", "beta1", "1"},
           {"FedAdam", "beta2", "1.5"},
           {"FedAdam", "tau", "0"},
           {"FedAdam", "tau", "-0.001"},
           {"FedAdam", "initialAccumulator", "-1"},
           {"FedAdam", "biasCorrection", "1"},
           {"FedAdam", "biasCorrection", "True"},
           {"FedProx", "mu", "-0.1"}}) {
    EXPECT_THAT(MakeRule({algorithm, {{name, text}}}),
                StatusIs(Code::kInvalidArgument, HasSubstr("it must be ")))
        << name << " " << text;
  }
  EXPECT_THAT(MakeRule({"FedAdam", {{"initialAccumulator", "0"}, {"beta1", "0"}}}), base::IsOk());
  EXPECT_THAT(MakeRule({"FedAdam", {{"tau", "1e-9"}, {"serverLearningRate", ".5"}}}), base::IsOk());
}

}  // namespace
}  // namespace fl::strategy
