#include "aggregator/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace fl::aggregator {
namespace {

using ::testing::HasSubstr;

std::vector<EventBody> OneOfEach() {
  const base::Digest digest = base::Digest::Of(std::string_view("x"));
  return {JobConfigured{"{}", digest, 9},
          JobStarted{base::VersionNumber(3)},
          RoundStarted{base::RoundNumber(2),
                       1,
                       {base::ClientName("a"), base::ClientName("b")},
                       base::VersionNumber(3)},
          UpdateAccepted{base::ClientName("a"), digest, 100, 5, 6, {{"loss", 0.25}}},
          ClientFailed{base::ClientName("b"), "no disk"},
          RoundClosed{"all have answered"},
          RoundMissed{"deadline"},
          RoundAggregated{digest, 10, digest, 20, 2, {{"train_loss", 1.5}}},
          RoundEvaluated{{{"accuracy", 0.5}}, "odd"},
          RoundPublished{base::VersionNumber(4)},
          JobFinished{true, "Converged", "accuracy reached 0.9"}};
}

TEST(Events, EveryKindReadsBackAsItWasWritten) {
  const base::Time time = base::Time(std::chrono::milliseconds(1'800'000'000'123));
  ASSERT_EQ(OneOfEach().size(), std::variant_size_v<EventBody>);
  for (const EventBody& body : OneOfEach()) {
    const std::string text = ToJson({time, body});
    ASSERT_OK_AND_ASSIGN(const Event read, EventFromJson(text));
    EXPECT_EQ(read.time, time);
    EXPECT_EQ(read.body.index(), body.index());
    EXPECT_EQ(ToJson(read), text);
    EXPECT_FALSE(Describe(body).message.empty());
  }
}

TEST(Events, WhatIsUnknownOrIncompleteIsAnError) {
  EXPECT_THAT(EventFromJson(R"({"type":"dance","time":"2026-01-01T00:00:00Z"})"),
              base::StatusIs(base::Code::kDataLoss, HasSubstr("dance")));
  EXPECT_FALSE(EventFromJson(R"({"type":"published","time":"2026-01-01T00:00:00Z"})").ok());
  EXPECT_FALSE(EventFromJson("{}").ok());
}

}  // namespace
}  // namespace fl::aggregator
