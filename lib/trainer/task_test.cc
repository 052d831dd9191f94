#include "trainer/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "trainer/config.h"

namespace fl::trainer {
namespace {

using base::Code;
using ::testing::HasSubstr;

Task Example() {
  Task task;
  task.job = base::JobName("digits");
  task.round = base::RoundNumber(3);
  task.attempt = 1;
  task.client = base::ClientName("hospital-a");
  task.seed = 4'000'000'000;
  task.config = R"({"learningRate":0.05,"name":"x","deep":{"list":[1,2.5,true,null]}})";
  task.mu = 0.25;
  task.model = "/m/model.safetensors";
  task.output = "/m/out.safetensors";
  task.result = "/m/result.json";
  task.dataset = "file:///data/a.csv";
  return task;
}

TEST(TaskTest, ComesBackFromItsJson) {
  const Task task = Example();
  const Task back = TaskFromJson(ToJson(task)).value();
  EXPECT_EQ(ToJson(back), ToJson(task));
  EXPECT_EQ(back.seed, 4'000'000'000);
  EXPECT_EQ(back.mu, 0.25);
  EXPECT_EQ(back.output, task.output);
  EXPECT_THAT(ToJson(task), HasSubstr(R"("task":"train")"));

  Task evaluate = task;
  evaluate.kind = TaskKind::kEvaluate;
  evaluate.output.clear();
  EXPECT_EQ(TaskFromJson(ToJson(evaluate))->kind, TaskKind::kEvaluate);
}

TEST(TaskTest, ConfigKeepsItsTypes) {
  Task task = Example();
  task.config = R"({"a":1,"b":1.0,"c":"1","d":true})";
  EXPECT_THAT(ToJson(task), HasSubstr(R"("config":{"a":1,"b":1.0,"c":"1","d":true})"));
}

TEST(TaskTest, RefusesWhatIsWrong) {
  const auto error = [](const std::string& json) { return TaskFromJson(json).status(); };
  EXPECT_EQ(error("").code(), Code::kInvalidArgument);
  EXPECT_EQ(error("[]").code(), Code::kInvalidArgument);
  const std::string rest =
      R"(,"job":"j","round":1,"client":"c","seed":1,"model":"m","result":"r","output":"o"})";
  EXPECT_TRUE(TaskFromJson(R"({"task":"train","unknown":1)" + rest).ok());
  EXPECT_THAT(error(R"({"task":"sleep")" + rest).message(), HasSubstr("sleep"));
  EXPECT_THAT(error(R"({"task":"train","config":[])" + rest).message(), HasSubstr("config"));
  EXPECT_THAT(error(R"({"task":"train","mu":-1)" + rest).message(), HasSubstr("mu"));
  EXPECT_THAT(error(R"({"task":"train","job":"j","round":1,"client":"c","seed":4294967296,)"
                    R"("model":"m","result":"r","output":"o"})")
                  .message(),
              HasSubstr("seed"));
  EXPECT_THAT(error(R"({"task":"train","job":"j","round":1,"client":"c","seed":1,)"
                    R"("model":"m","result":"r"})")
                  .message(),
              HasSubstr("output"));
}

TEST(TaskTest, SeedDependsOnJobRoundAndClientOnly) {
  const base::RoundNumber one(1);
  const base::ClientName a("a");
  const uint32_t seed = TaskSeed(7, one, a);
  EXPECT_EQ(TaskSeed(7, one, a), seed);
  EXPECT_NE(TaskSeed(8, one, a), seed);
  EXPECT_NE(TaskSeed(7, one.Next(), a), seed);
  EXPECT_NE(TaskSeed(7, one, base::ClientName("b")), seed);
}

TEST(TaskResultTest, ComesBackFromItsJson) {
  const TaskResult result{60, 6, {{"loss", 0.125}, {"accuracy", 1}}};
  EXPECT_EQ(TaskResultFromJson(ToJson(result)).value(), result);
  EXPECT_EQ(TaskResultFromJson(R"({"num_samples": 5.0, "other": []})").value(),
            (TaskResult{5, 0, {}}));
  EXPECT_EQ(TaskResultFromJson(R"({"num_samples": 0, "num_steps": null, "metrics": null})").value(),
            TaskResult());
}

// B01: a count that is no count is refused here, before any aggregation sees it.
TEST(TaskResultTest, B01_RefusesWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "JSON"},
      {"nonsense", "JSON"},
      {R"({"num_samples": 1} {})", "JSON"},
      {"[1]", "object"},
      {"{}", "num_samples is missing"},
      {R"({"num_samples": -5})", "num_samples is below 0"},
      {R"({"num_samples": "5"})", "num_samples is string"},
      {R"({"num_samples": null})", "num_samples is null"},
      {R"({"num_samples": 1.5})", "num_samples is not a whole number"},
      {R"({"num_samples": 1e300})", "num_samples is above 2^53"},
      {R"({"num_samples": NaN})", "NaN"},
      {R"({"num_samples": 1, "num_steps": -1})", "num_steps is below 0"},
      {R"({"num_samples": 1, "metrics": []})", "metrics is not an object"},
      {R"({"num_samples": 1, "metrics": {"loss": NaN}})", "NaN"},
      {R"({"num_samples": 1, "metrics": {"loss": -Infinity}})", "infinite"},
      {R"({"num_samples": 1, "metrics": {"loss": 1e999}})", "JSON"},
      {R"({"num_samples": 1, "metrics": {"loss": "low"}})", "metric \"loss\""},
      {R"({"num_samples": 1, "metrics": {"": 1}})", "name of a metric"},
  };
  for (const auto& [json, message] : cases) {
    const base::Status status = TaskResultFromJson(json).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << json;
    EXPECT_THAT(status.message(), HasSubstr(message)) << json;
  }
}

TEST(TaskResultTest, FileIsBounded) {
  const base::Path path = std::filesystem::temp_directory_path() /
                          ("task_result_test-" + std::to_string(::getpid()) + ".json");
  EXPECT_EQ(ReadTaskResult(path).status().code(), Code::kNotFound);
  ASSERT_TRUE(base::WriteFileAtomically(path, std::string(2 << 20, ' ')).ok());
  EXPECT_EQ(ReadTaskResult(path).status().code(), Code::kOutOfRange);
  ASSERT_TRUE(base::RemoveFile(path).ok());
}

TEST(ConfigTest, ReadsByNameAndType) {
  Config config = Config::Parse(R"({"rate": 0.5, "text": "0.25", "count": 10.0})").value();
  EXPECT_EQ(config.Number("rate", 1, 0, 1).value(), 0.5);
  EXPECT_EQ(config.Number("text", 1, 0, 1).value(), 0.25);
  EXPECT_EQ(config.Number("missing", 1, 0, 1).value(), 1);
  EXPECT_EQ(config.Integer("count", 1, 0, 100).value(), 10);
  EXPECT_TRUE(config.CheckAllRead().ok());
}

TEST(ConfigTest, SaysWhatIsWrong) {
  Config config =
      Config::Parse(R"({"rate": 5, "list": [1], "half": 1.5, "words": "a lot"})").value();
  EXPECT_THAT(config.Number("rate", 1, 0, 1).status().message(), HasSubstr("rate is 5"));
  EXPECT_THAT(config.Number("list", 1, 0, 1).status().message(), HasSubstr("list is [1]"));
  EXPECT_THAT(config.Number("words", 1, 0, 1).status().message(), HasSubstr("a lot"));
  EXPECT_THAT(config.Integer("half", 1, 0, 10).status().message(), HasSubstr("1.5"));
  Config misspelt = Config::Parse(R"({"learningrate": 5})").value();
  EXPECT_TRUE(misspelt.Number("learningRate", 1, 0, 1).ok());
  EXPECT_THAT(misspelt.CheckAllRead().message(), HasSubstr("learningrate"));
  EXPECT_THAT(misspelt.CheckAllRead().hint(), HasSubstr("learningRate"));
  EXPECT_FALSE(Config::Parse("[]").ok());
  EXPECT_TRUE(Config::Parse("").ok());
}

}  // namespace
}  // namespace fl::trainer
