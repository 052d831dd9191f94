#include "wire/task.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace fl::wire {
namespace {

constexpr size_t kReasonLimit = 2000;

base::Result<TaskKind> KindFromName(const std::string& name) {
  if (name == "train") return TaskKind::kTrain;
  if (name == "evaluate") return TaskKind::kEvaluate;
  return base::InvalidArgument("task kind \"" + name + "\" is neither train nor evaluate");
}

void ReadKind(base::JsonReader& reader, TaskKind* kind) {
  std::string name;
  reader.Required("task", &name);
  if (!reader.status().ok()) return;
  const base::Result<TaskKind> read = KindFromName(name);
  if (read.ok()) {
    *kind = *read;
  } else {
    reader.Fail(read.status());
  }
}

}  // namespace

std::string_view Name(TaskKind kind) { return kind == TaskKind::kTrain ? "train" : "evaluate"; }

std::string Task::Key() const {
  return std::string(Name(kind)) + " " + job.str() + " round " + std::to_string(round.value()) +
         " attempt " + std::to_string(attempt);
}

std::string ToJson(const Task& task) {
  nlohmann::json json = {{"task", Name(task.kind)},
                         {"job", task.job.str()},
                         {"round", task.round.value()},
                         {"attempt", task.attempt},
                         {"deadlineSeconds", task.deadline_seconds},
                         {"seed", task.seed},
                         {"model", {{"digest", task.model.ToString()}, {"size", task.model_size}}},
                         {"mu", task.mu},
                         {"sendMetrics", task.send_metrics}};
  json["config"] = nlohmann::json::parse(task.config, nullptr, false);
  if (task.builtin_trainer) json["trainer"]["builtin"] = *task.builtin_trainer;
  if (task.named_trainer) json["trainer"]["name"] = *task.named_trainer;
  return base::DumpJson(json);
}

base::Result<Task> TaskFromJson(std::string_view text) {
  FL_ASSIGN_OR_RETURN(const nlohmann::json json, base::ParseJson(text, "task"));
  base::JsonReader reader(json, "task");
  Task task;
  ReadKind(reader, &task.kind);
  std::string job;
  int64_t round = 0;
  reader.Required("job", &job);
  reader.Required("round", &round);
  reader.Optional("attempt", &task.attempt);
  reader.Required("deadlineSeconds", &task.deadline_seconds);
  reader.Optional("seed", &task.seed);
  reader.Optional("mu", &task.mu);
  reader.Optional("sendMetrics", &task.send_metrics);
  if (const nlohmann::json* model = reader.Child("model")) {
    base::JsonReader model_reader(*model, "model");
    std::string digest;
    model_reader.Required("digest", &digest);
    model_reader.Required("size", &task.model_size);
    if (model_reader.status().ok()) {
      const base::Result<base::Digest> parsed = base::Digest::Parse(digest);
      if (parsed.ok()) {
        task.model = *parsed;
      } else {
        reader.Fail(parsed.status());
      }
    }
    if (!model_reader.status().ok()) reader.Fail(model_reader.status());
  }
  if (const nlohmann::json* trainer = reader.Child("trainer")) {
    base::JsonReader trainer_reader(*trainer, "trainer");
    trainer_reader.Optional("builtin", &task.builtin_trainer);
    trainer_reader.Optional("name", &task.named_trainer);
    if (!trainer_reader.status().ok()) reader.Fail(trainer_reader.status());
  }
  if (const nlohmann::json* config = reader.Child("config")) task.config = base::DumpJson(*config);
  FL_RETURN_IF_ERROR(reader.status());
  if (task.builtin_trainer.has_value() == task.named_trainer.has_value()) {
    return base::InvalidArgument("task: trainer must have exactly one of builtin and name");
  }
  task.job = base::JobName(job);
  task.round = base::RoundNumber(round);
  return task;
}

std::string ToJson(const EvaluationReport& report) {
  return base::DumpJson(nlohmann::json{
      {"attempt", report.attempt}, {"samples", report.samples}, {"metrics", report.metrics}});
}

base::Result<EvaluationReport> EvaluationReportFromJson(std::string_view text) {
  FL_ASSIGN_OR_RETURN(const nlohmann::json json, base::ParseJson(text, "evaluation"));
  base::JsonReader reader(json, "evaluation");
  EvaluationReport report;
  reader.Optional("attempt", &report.attempt);
  reader.Required("samples", &report.samples);
  reader.Required("metrics", &report.metrics);
  FL_RETURN_IF_ERROR(reader.status());
  if (report.samples < 0) {
    return base::InvalidArgument("evaluation: samples must be at least 0, not " +
                                 std::to_string(report.samples));
  }
  return report;
}

std::string ToJson(const FailureReport& report) {
  return base::DumpJson(nlohmann::json{{"task", Name(report.kind)},
                                       {"attempt", report.attempt},
                                       {"reason", report.reason.substr(0, kReasonLimit)}});
}

base::Result<FailureReport> FailureReportFromJson(std::string_view text) {
  FL_ASSIGN_OR_RETURN(const nlohmann::json json, base::ParseJson(text, "failure report"));
  base::JsonReader reader(json, "failure report");
  FailureReport report;
  ReadKind(reader, &report.kind);
  reader.Optional("attempt", &report.attempt);
  reader.Required("reason", &report.reason);
  FL_RETURN_IF_ERROR(reader.status());
  report.reason.resize(std::min(report.reason.size(), kReasonLimit));
  return report;
}

}  // namespace fl::wire
