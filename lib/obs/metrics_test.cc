#include "obs/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fl::obs {
namespace {

using ::testing::HasSubstr;

TEST(Metrics, SameNameAndLabelsAreOneInstrument) {
  Metrics metrics;
  metrics.AddCounter("fl_updates_total", "updates", {{"result", "accepted"}}).Add(2);
  metrics.AddCounter("fl_updates_total", "updates", {{"result", "accepted"}}).Add();
  metrics.AddCounter("fl_updates_total", "updates", {{"result", "rejected"}}).Add();
  metrics.AddGauge("fl_round", "round").Set(7);
  metrics.AddHistogram("fl_seconds", "time", {0.1, 1}).Observe(0.5);
  const std::string text = metrics.Serialize();
  EXPECT_THAT(text, HasSubstr("fl_updates_total{result=\"accepted\"} 3"));
  EXPECT_THAT(text, HasSubstr("fl_updates_total{result=\"rejected\"} 1"));
  EXPECT_THAT(text, HasSubstr("fl_round 7"));
  EXPECT_THAT(text, HasSubstr("fl_seconds_bucket{le=\"1\"} 1"));
}

}  // namespace
}  // namespace fl::obs
