#include "cli/json_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "spec/json.h"

namespace fl::cli {
namespace {

using base::IsOkAndHolds;
using base::StatusIs;
using ::testing::HasSubstr;

constexpr std::string_view kData = R"({
  "kind": "List",
  "items": [
    {"metadata": {"name": "a", "labels": {"fl.dev/site": "north"}}, "spec": {"rounds": 5, "fast": true}},
    {"metadata": {"name": "b"}, "spec": {"rounds": 20, "rate": 0.5}},
    {"metadata": {"name": "c"}, "spec": {"rounds": 8, "parent": null}}
  ]
})";

base::Result<std::string> Evaluate(std::string_view path) {
  FL_ASSIGN_OR_RETURN(const JsonPath parsed, JsonPath::Parse(path));
  FL_ASSIGN_OR_RETURN(const spec::Value data, spec::ParseJson(kData));
  return parsed.Evaluate(data);
}

TEST(JsonPath, TakesWhatKubectlTakes) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{.kind}", "List"},
      {".kind", "List"},
      {"{$.kind}", "List"},
      {"{ .kind }", "List"},
      {"{.items[0].metadata.name}", "a"},
      {"{.items[-1].metadata.name}", "c"},
      {"{.items[*].metadata.name}", "a b c"},
      {"{.items[0:2].metadata.name}", "a b"},
      {"{.items[::2].metadata.name}", "a c"},
      {"{.items[-2:].metadata.name}", "b c"},
      {"{.items[0,2].metadata.name}", "a c"},
      {"{.items[*]['metadata'].name}", "a b c"},
      {"{.items[0].metadata.labels.fl\\.dev/site}", "north"},
      {"{.items[0].metadata.labels['fl.dev/site']}", "north"},
      {"{.items[*].spec.rounds}", "5 20 8"},
      {"{.items[0].spec}", R"({"fast":true,"rounds":5})"},
      {"{.items[1].spec.rate}", "0.5"},
      {"{.items[2].spec.parent}", ""},
      {"{.items[0].spec.absent}", ""},
      {"{.absent.deeper[3]}", ""},
      {"{..name}", "a b c"},
      {"{.items[?(@.spec.rounds>5)].metadata.name}", "b c"},
      {"{.items[?(@.spec.rounds<=5)].metadata.name}", "a"},
      {"{.items[?(@.metadata.name==\"b\")].spec.rounds}", "20"},
      {"{.items[?(@.metadata.name != 'b')].spec.rounds}", "5 8"},
      {"{.items[?(@.spec.fast)].metadata.name}", "a"},
      {"{.items[?(@.spec.fast==true)].metadata.name}", "a"},
      {"name: {.items[0].metadata.name}!", "name: a!"},
      {"{.items[0].metadata.name}{\"\\t\"}{.items[0].spec.rounds}", "a\t5"},
      {"{range .items[*]}{.metadata.name}={.spec.rounds}{\"\\n\"}{end}", "a=5\nb=20\nc=8\n"},
      {"{range .items[*]}{range .spec}{.rounds};{end}{end}", "5;20;8;"},
  };
  for (const auto& [path, text] : cases) {
    EXPECT_THAT(Evaluate(path), IsOkAndHolds(text)) << path;
  }
}

TEST(JsonPath, SaysWhereItIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{.kind", "'}' is missing"},
      {"{.items[}", "expected a number"},
      {"{.items[0}", "expected ']'"},
      {"{.items[?(@.a>)]}", "expected a number"},
      {"{.items[::0]}", "at least 1"},
      {"{range .items[*]}{.a}", "{range} without {end}"},
      {"{end}", "{end} without {range}"},
      {"{.a..}", "a field name is missing"},
      {"{\"open}", "quote"},
      {"plain", "starts with"},
      {"{.items[9]}", "past the end of a list of 3"},
      {"{.items[-4]}", "past the end"},
  };
  for (const auto& [path, message] : cases) {
    EXPECT_THAT(Evaluate(path), StatusIs(base::Code::kInvalidArgument, HasSubstr(message))) << path;
  }
}

TEST(JsonPath, DeepNestsAreRefused) {
  std::string path;
  for (int i = 0; i < 1000; ++i) path += "{range .a}";
  EXPECT_THAT(JsonPath::Parse(path), StatusIs(base::Code::kInvalidArgument, HasSubstr("deep")));
}

}  // namespace
}  // namespace fl::cli
