#include "spec/selector.h"

#include <gtest/gtest.h>

namespace fl::spec {
namespace {

LabelSelector One(SelectorOperator op, std::vector<std::string> values) {
  return {.match_labels = {}, .match_expressions = {{"region", op, std::move(values)}}};
}

TEST(LabelSelector, EmptyMatchesEverything) {
  EXPECT_TRUE(LabelSelector().Matches({}));
  EXPECT_TRUE(LabelSelector().Matches({{"a", "b"}}));
}

TEST(LabelSelector, AllLabelsHaveToBeThere) {
  const LabelSelector selector{.match_labels = {{"region", "eu"}, {"tier", ""}},
                               .match_expressions = {}};
  EXPECT_TRUE(selector.Matches({{"region", "eu"}, {"tier", ""}, {"more", "x"}}));
  EXPECT_FALSE(selector.Matches({{"region", "eu"}}));
  EXPECT_FALSE(selector.Matches({{"region", "us"}, {"tier", ""}}));
  EXPECT_FALSE(selector.Matches({}));
}

TEST(LabelSelector, OperatorsAsInKubernetes) {
  const Labels eu{{"region", "eu"}};
  const Labels us{{"region", "us"}};
  const Labels none;
  struct Row {
    LabelSelector selector;
    bool eu, us, none;
  };
  const std::vector<Row> rows{
      {One(SelectorOperator::kIn, {"eu", "asia"}), true, false, false},
      {One(SelectorOperator::kNotIn, {"eu", "asia"}), false, true, true},
      {One(SelectorOperator::kExists, {}), true, true, false},
      {One(SelectorOperator::kDoesNotExist, {}), false, false, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(Name(row.selector.match_expressions[0].op));
    EXPECT_EQ(row.selector.Matches(eu), row.eu);
    EXPECT_EQ(row.selector.Matches(us), row.us);
    EXPECT_EQ(row.selector.Matches(none), row.none);
  }
}

TEST(LabelSelector, LabelsAndExpressionsAreAnded) {
  LabelSelector selector = One(SelectorOperator::kNotIn, {"us"});
  selector.match_labels["tier"] = "gold";
  EXPECT_TRUE(selector.Matches({{"tier", "gold"}}));
  EXPECT_FALSE(selector.Matches({{"tier", "gold"}, {"region", "us"}}));
  EXPECT_FALSE(selector.Matches({{"region", "eu"}}));
}

}  // namespace
}  // namespace fl::spec
