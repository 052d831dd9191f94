#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fl::base {
namespace {

using ::testing::HasSubstr;

TEST(ParseJson, RefusesWhatIsNotOneBoundedObject) {
  EXPECT_THAT(ParseJson("{\"a\":1,\"a\":2}", "task").status().message(),
              HasSubstr("task: not valid JSON: has the key \"a\" twice"));
  EXPECT_TRUE(ParseJson("{\"a\":{\"a\":2},\"b\":{\"a\":2}}", "task").ok());
  EXPECT_FALSE(ParseJson("{} {}", "task").ok());
  EXPECT_FALSE(ParseJson("", "task").ok());
  EXPECT_FALSE(ParseJson("{\"a\":NaN}", "task").ok());
  EXPECT_THAT(ParseJson(std::string(100000, '['), "task").status().message(),
              HasSubstr("nested deeper than 64"));
}

TEST(JsonReader, KeepsTheFirstProblem) {
  const nlohmann::json object = {{"n", 1.5}, {"s", 7}};
  JsonReader reader(object, "task");
  int64_t n = 0;
  std::string s;
  reader.Required("n", &n);
  reader.Required("s", &s);
  EXPECT_EQ(reader.status().message(),
            "task: field \"n\" must be a whole number that fits 64 bits, not 1.5");
}

TEST(JsonReader, OptionalKeepsTheFallbackOnNullAndAbsence) {
  const nlohmann::json object = {{"a", nullptr}, {"m", {{"x", 1}, {"y", 0.5}}}, {"b", 3}};
  JsonReader reader(object, "task");
  std::string a = "kept";
  std::optional<int64_t> b;
  std::optional<int64_t> c;
  std::map<std::string, double> m;
  reader.Optional("a", &a);
  reader.Optional("b", &b);
  reader.Optional("c", &c);
  reader.Required("m", &m);
  ASSERT_TRUE(reader.status().ok()) << reader.status().ToString();
  EXPECT_EQ(a, "kept");
  EXPECT_EQ(b, 3);
  EXPECT_EQ(c, std::nullopt);
  EXPECT_EQ(m.at("y"), 0.5);
}

TEST(JsonReader, NumbersPast64BitsAreRefused) {
  const nlohmann::json object = {{"big", uint64_t{1} << 63}, {"negative", -1}};
  int64_t n = 0;
  uint64_t u = 0;
  JsonReader big(object, "x");
  big.Required("big", &n);
  EXPECT_FALSE(big.status().ok());
  JsonReader negative(object, "x");
  negative.Required("negative", &u);
  EXPECT_FALSE(negative.status().ok());
}

}  // namespace
}  // namespace fl::base
