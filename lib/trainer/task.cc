#include "trainer/task.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/encoding.h"
#include "base/json.h"

namespace fl::trainer {
namespace {

using base::InvalidArgument;
using base::Result;
using base::Status;
using nlohmann::json;

/// Above this a double no longer holds every integer.
constexpr int64_t kMaxCount = int64_t{1} << 53;
constexpr size_t kMaxMetrics = 1000;
constexpr size_t kMaxMetricName = 253;
constexpr uint64_t kMaxResultBytes = uint64_t{1} << 20;

Result<int64_t> ReadCount(const json& object, const std::string& name) {
  const json& value = object.at(name);
  if (!value.is_number()) {
    return InvalidArgument("result: " + name + " is " + value.type_name() + ", not a number");
  }
  const double number = value.get<double>();
  if (!(number >= 0)) return InvalidArgument("result: " + name + " is below 0");
  // 60.0 is a count too: some languages have one kind of number.
  if (number != std::floor(number)) {
    return InvalidArgument("result: " + name + " is not a whole number");
  }
  if (number > static_cast<double>(kMaxCount)) {
    return InvalidArgument("result: " + name + " is above 2^53");
  }
  return static_cast<int64_t>(number);
}

}  // namespace

std::string ToJson(const Task& task) {
  nlohmann::ordered_json object;
  object["task"] = task.kind == TaskKind::kTrain ? "train" : "evaluate";
  object["job"] = task.job.str();
  object["round"] = task.round.value();
  object["attempt"] = task.attempt;
  object["client"] = task.client.str();
  object["seed"] = task.seed;
  const Result<json> config = base::ParseJson(task.config.empty() ? "{}" : task.config, "config");
  FL_CHECK_MSG(config.ok(), "Task::config is not JSON");
  object["config"] = *config;
  object["mu"] = task.mu;
  object["model"] = task.model.string();
  object["output"] = task.output.string();
  object["result"] = task.result.string();
  object["dataset"] = task.dataset;
  return base::DumpJson(object);
}

Result<Task> TaskFromJson(std::string_view text) {
  FL_ASSIGN_OR_RETURN(const json object, base::ParseJson(text, "task"));
  base::JsonReader reader(object, "task");
  Task task;
  std::string kind;
  std::string job;
  std::string client;
  std::string model;
  std::string output;
  std::string result;
  int64_t round = 0;
  uint64_t seed = 0;
  reader.Required("task", &kind);
  reader.Required("job", &job);
  reader.Required("round", &round);
  reader.Optional("attempt", &task.attempt);
  reader.Required("client", &client);
  reader.Required("seed", &seed);
  reader.Optional("mu", &task.mu);
  reader.Required("model", &model);
  reader.Optional("output", &output);
  reader.Required("result", &result);
  reader.Optional("dataset", &task.dataset);
  FL_RETURN_IF_ERROR(reader.status());
  if (kind == "evaluate") {
    task.kind = TaskKind::kEvaluate;
  } else if (kind != "train") {
    return InvalidArgument("task: task is \"" + kind + "\"", "it is \"train\" or \"evaluate\"");
  }
  if (seed > UINT32_MAX) return InvalidArgument("task: seed is not below 2^32");
  if (!(task.mu >= 0)) return InvalidArgument("task: mu is below 0");
  if (task.kind == TaskKind::kTrain && output.empty()) {
    return InvalidArgument("task: output is missing");
  }
  if (const auto config = object.find("config"); config != object.end() && !config->is_null()) {
    if (!config->is_object()) return InvalidArgument("task: config is not an object");
    task.config = base::DumpJson(*config);
  }
  task.job = base::JobName(job);
  task.client = base::ClientName(client);
  task.round = base::RoundNumber(round);
  task.seed = static_cast<uint32_t>(seed);
  task.model = model;
  task.output = output;
  task.result = result;
  return task;
}

uint32_t TaskSeed(uint64_t job_seed, base::RoundNumber round, const base::ClientName& client) {
  const base::Digest digest = base::Digest::Of(std::to_string(job_seed) + "/" +
                                               std::to_string(round.value()) + "/" + client.str());
  uint32_t seed = 0;
  for (size_t i = 0; i < 4; ++i) seed |= uint32_t{digest.bytes()[i]} << (8 * i);
  return seed;
}

std::string ToJson(const TaskResult& result) {
  nlohmann::ordered_json object;
  object["num_samples"] = result.num_samples;
  object["num_steps"] = result.num_steps;
  object["metrics"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : result.metrics) object["metrics"][name] = value;
  return base::DumpJson(object);
}

Result<TaskResult> TaskResultFromJson(std::string_view text) {
  Result<json> parsed = base::ParseJson(text, "result");
  if (!parsed.ok()) {
    // Python's json module writes NaN and Infinity, which JSON does not have.
    if (text.find("NaN") != std::string_view::npos ||
        text.find("Infinity") != std::string_view::npos) {
      return InvalidArgument("result: a value is NaN or infinite",
                             "report only finite metrics; leave out those that are not");
    }
    // Without the parser's message: it quotes the text, which stays at the agent.
    return InvalidArgument("result: not valid JSON",
                           "write one JSON object, e.g. "
                           R"({"num_samples": 60, "metrics": {"loss": 0.1}})");
  }
  const json& object = *parsed;
  if (!object.is_object()) return InvalidArgument("result: not a JSON object");
  if (!object.contains("num_samples")) {
    return InvalidArgument("result: num_samples is missing",
                           "write the number of samples that were used");
  }
  TaskResult result;
  FL_ASSIGN_OR_RETURN(result.num_samples, ReadCount(object, "num_samples"));
  if (object.contains("num_steps") && !object.at("num_steps").is_null()) {
    FL_ASSIGN_OR_RETURN(result.num_steps, ReadCount(object, "num_steps"));
  }
  if (const auto metrics = object.find("metrics"); metrics != object.end() && !metrics->is_null()) {
    if (!metrics->is_object()) return InvalidArgument("result: metrics is not an object");
    if (metrics->size() > kMaxMetrics) {
      return InvalidArgument("result: " + std::to_string(metrics->size()) +
                             " metrics, at most 1000 are taken");
    }
    for (const auto& [name, value] : metrics->items()) {
      if (name.empty() || name.size() > kMaxMetricName) {
        return InvalidArgument("result: the name of a metric is empty or longer than 253 bytes");
      }
      if (!value.is_number() || !std::isfinite(value.get<double>())) {
        return InvalidArgument("result: metric \"" + name + "\" is not a finite number");
      }
      result.metrics[name] = value.get<double>();
    }
  }
  return result;
}

Result<TaskResult> ReadTaskResult(const base::Path& path) {
  FL_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxResultBytes));
  return TaskResultFromJson(text);
}

}  // namespace fl::trainer
