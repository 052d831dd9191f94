#include "spec/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/testing/status_matchers.h"
#include "spec/internal/yaml_reader.h"
#include "spec/parse.h"

namespace fl::spec {
namespace {

using ::testing::HasSubstr;

const char kJob[] =
    R"({"apiVersion":"kubefl.dev/v1alpha1","kind":"FederatedLearningJob","metadata":{"name":"a"},)"
    R"("spec":{"modelRef":{"name":"m"},"rounds":5,"trainer":{"builtin":"mlp","config":{"rate":0.5,"n":1.0,"i":1}}}})";

TEST(Json, IsCanonical) {
  const base::Result<FederatedLearningJob> job = FromJson<FederatedLearningJob>(kJob);
  ASSERT_THAT(job, base::IsOk());
  EXPECT_EQ(
      ToJson(*job),
      R"({"apiVersion":"kubefl.dev/v1alpha1","kind":"FederatedLearningJob","metadata":{"name":"a"},)"
      R"("spec":{"modelRef":{"name":"m"},"rounds":5,"trainer":{"builtin":"mlp","config":{"i":1,"n":1.0,"rate":0.5}}}})");
}

TEST(Json, FromJsonIsAsStrictAsParseYaml) {
  const auto refused = [](const std::string& what, const std::string& with,
                          const std::string& why) {
    std::string text = kJob;
    const size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, what.size(), with);
    EXPECT_THAT(FromJson<Object>(text),
                base::StatusIs(base::Code::kInvalidArgument, HasSubstr(why)));
  };
  refused("\"rounds\":5", "\"rounds\":0", "spec.rounds: must be from 1 to 100000, not 0");
  refused("\"rounds\":5", "\"rounds\":\"5\"", "spec.rounds: must be a whole number");
  refused("\"rounds\":5", "\"rounds\":5,\"rounds\":5", "spec.rounds: the key stands twice");
  refused("\"rounds\":5", "\"rounds\":5,\"x\":5", "spec.x: unknown field");
  refused("\"rounds\":5", "\"rounds\":NaN", "not JSON");
  refused("\"rounds\":5", "\"rounds\":1e999", "not JSON");
  refused("\"rounds\":5", "\"rounds\":05", "not JSON");
  refused("}}}}", "}}}} x", "not JSON");
  refused("}}}}", "}}}", "not JSON");
  refused("\"name\":\"a\"", "\"name\":7", "metadata.name: must be a string: write \"7\" in quotes");
  refused("kubefl.dev/v1alpha1", "kubefl.dev/v1", "apiVersion: must be kubefl.dev/v1alpha1");
  EXPECT_THAT(FromJson<FederatedModel>(kJob),
              base::StatusIs(base::Code::kInvalidArgument,
                             "kind: must be FederatedModel, not FederatedLearningJob"));
  EXPECT_THAT(FromJson<Object>(""), testing::Not(base::IsOk()));
  EXPECT_THAT(FromJson<Object>("[]"), testing::Not(base::IsOk()));
}

TEST(Json, DeepAndLargeTextsAreRefused) {
  EXPECT_THAT(ParseJson(std::string(100'000, '[')),
              base::StatusIs(base::Code::kInvalidArgument, HasSubstr("nested more than 100 deep")));
  EXPECT_THAT(ParseJson(std::string(99, '[') + std::string(99, ']')), base::IsOk());
  EXPECT_THAT(ParseJson(std::string(kMaxTextBytes + 1, ' ')),
              base::StatusIs(base::Code::kInvalidArgument, HasSubstr("at most 16777216")));
  EXPECT_THAT(ParseJson("\"\x80\""), testing::Not(base::IsOk()));
}

TEST(Json, ManyAndLongProblemsMakeAShortMessage) {
  std::string text = R"({"apiVersion":"kubefl.dev/v1alpha1","kind":"FederatedClient",)"
                     R"("metadata":{"name":"a"},"spec":{"type":")" +
                     std::string(100'000, 'x') + "\"";
  for (int i = 0; i < 1000; ++i) text += ",\"x" + std::to_string(i) + "\":1";
  const base::Status status = FromJson<Object>(text + "}}").status();
  EXPECT_LT(status.message().size(), 5000U);
  EXPECT_THAT(status.message(), HasSubstr("and 981 more"));
}

TEST(Json, NumbersKeepTheirTypes) {
  const base::Result<Value> value =
      ParseJson("[1, 1.0, 1e2, -0.5, 9223372036854775807, 18446744073709551615]");
  ASSERT_THAT(value, base::IsOk());
  EXPECT_EQ(value->ToJson(), "[1,1.0,100.0,-0.5,9223372036854775807,18446744073709551616.0]");
}

/// Strings that a YAML reader could take for something else, or that need escapes.
TEST(Value, EveryStringComesBackFromJsonAndYaml) {
  std::vector<std::string> texts{
      "",     "y",    "no",     "null",   "~",      "1",          "0x1",        "1e3",
      ".5",   ".nan", "1_0",    "<<",     "=",      "- a",        "-",          "a: b",
      "a #b", "#a",   "?",      "!x",     "&a",     "*a",         "[a",         "{a",
      "\"",   "'",    "a\nb",   "\n",     " a",     "a ",         "\t",         "\\n",
      "\x7F", "\x01", "\u00e9", "\u0085", "\ufeff", "\u2028",     "\U0001F600", "%a",
      "@a",   "`a",   "---",    "...",    "--- a",  "2024-01-01", "a,b",        "file:///a b"};
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    Value::Map map;
    map.emplace("key", text);
    map.emplace("list", Value::List{Value(text), Value(Value::Map{{"inner", Value(text)}})});
    map.emplace(text, "as a key");
    const Value value(std::move(map));
    EXPECT_EQ(*ParseJson(value.ToJson()), value) << value.ToJson();
    EXPECT_EQ(*ParseJson(value.ToPrettyJson(2)), value) << value.ToPrettyJson(2);
    const std::string yaml = value.ToYaml();
    const std::vector<internal::Tree> trees = internal::ReadYaml(yaml);
    ASSERT_EQ(trees.size(), 1U) << yaml;
    if (text != "<<") {  // which may be no key at all
      ASSERT_TRUE(trees[0].problems.empty()) << yaml << trees[0].problems[0].ToString();
      EXPECT_EQ(trees[0].root, value) << yaml;
    }
  }
}

TEST(Value, ShapesAndNumbersComeBackFromYaml) {
  const base::Result<Value> value = ParseJson(
      R"({"a":[],"b":{},"c":[[1,[2]],[],{}],"d":[{"x":1,"y":[{"z":null}]}],"e":[true,false,null],)"
      R"("f":[1.0,1e-7,1e300,-0.0,0.1,123456789012345.0,9007199254740993]})");
  ASSERT_THAT(value, base::IsOk());
  const std::vector<internal::Tree> trees = internal::ReadYaml(value->ToYaml());
  ASSERT_EQ(trees.size(), 1U);
  ASSERT_TRUE(trees[0].problems.empty()) << value->ToYaml();
  EXPECT_EQ(trees[0].root, *value) << value->ToYaml();
  EXPECT_EQ(trees[0].root.ToJson(), value->ToJson());
}

TEST(Value, PrettyJson) {
  EXPECT_EQ(Value(Value::Map{{"b", Value::List{1, "x"}}, {"a", Value::Map()}}).ToPrettyJson(2),
            "{\n  \"a\": {},\n  \"b\": [\n    1,\n    \"x\"\n  ]\n}");
  EXPECT_EQ(Value(std::numeric_limits<double>::infinity()).ToJson(), "null");
  EXPECT_EQ(Value("\x80").ToJson(), "\"\\ufffd\"");
}

TEST(Yaml, ObjectsAreWrittenForPeople) {
  const base::Result<Object> job = FromJson<Object>(kJob);
  ASSERT_THAT(job, base::IsOk());
  EXPECT_EQ(ToYaml(*job),
            "apiVersion: kubefl.dev/v1alpha1\nkind: FederatedLearningJob\nmetadata:\n  name: a\n"
            "spec:\n  modelRef:\n    name: m\n  rounds: 5\n  trainer:\n    builtin: mlp\n"
            "    config:\n      i: 1\n      \"n\": 1.0\n      rate: 0.5\n");
}

}  // namespace
}  // namespace fl::spec
