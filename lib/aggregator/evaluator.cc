#include "aggregator/evaluator.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "spec/value.h"
#include "spec/yaml_tree.h"
#include "trainer/builtin.h"
#include "trainer/evaluate.h"

namespace fl::aggregator {
namespace {

using Metrics = std::map<std::string, double>;

constexpr double kLongestTimeout = 30.0 * 24 * 3600;  // seconds

base::Result<Metrics> EvaluateBuiltin(const spec::FederatedLearningJob& job,
                                      const base::Path& model, const base::Path& data_dir,
                                      std::stop_token stop) {
  FL_ASSIGN_OR_RETURN(const trainer::DatasetSpec parsed,
                      trainer::DatasetSpec::Parse(*job.spec.evaluation.test_dataset));
  const trainer::DatasetSpec dataset = parsed.RelativeTo(data_dir);
  trainer::EvaluateOptions options;
  if (const auto scale = job.spec.trainer.config.find("featureScale");
      scale != job.spec.trainer.config.end()) {
    if (const auto* number = scale->second.As<double>()) options.feature_scale = *number;
    if (const auto* number = scale->second.As<int64_t>()) {
      options.feature_scale = static_cast<double>(*number);
    }
  }
  FL_ASSIGN_OR_RETURN(const trainer::Evaluation evaluation,
                      trainer::EvaluateModel(model, dataset, options, stop));
  return Metrics{{"accuracy", evaluation.accuracy}, {"loss", evaluation.loss}};
}

base::Result<Metrics> EvaluateByProgram(const trainer::ProcessTrainerOptions& program,
                                        const spec::FederatedLearningJob& job,
                                        const base::Path& model, const base::Path& work_dir,
                                        const base::Path& data_dir, std::stop_token stop) {
  FL_RETURN_IF_ERROR(base::MakeDirectories(work_dir, 0700));
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<trainer::ProcessTrainer> trainer,
                      trainer::ProcessTrainer::Create(program));
  trainer::Task task;
  task.kind = trainer::TaskKind::kEvaluate;
  task.job = base::JobName(job.metadata.name);
  task.client = base::ClientName("aggregator");
  task.config = spec::Value(job.spec.trainer.config).ToJson();
  task.model = std::filesystem::absolute(model);
  task.result = std::filesystem::absolute(work_dir) / "evaluation.json";
  const base::Result<trainer::DatasetSpec> dataset =
      trainer::DatasetSpec::Parse(*job.spec.evaluation.test_dataset);
  // A program may know other schemes.
  task.dataset =
      dataset.ok() ? dataset->RelativeTo(data_dir).ToString() : *job.spec.evaluation.test_dataset;
  FL_ASSIGN_OR_RETURN(const trainer::TaskResult result, trainer->Run(task, std::nullopt, stop));
  return result.metrics;
}

}  // namespace

base::Result<EvaluationPrograms> ReadEvaluationPrograms(const base::Path& path) {
  FL_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, 1 << 20));
  FL_ASSIGN_OR_RETURN(const spec::Value tree, spec::ParseYamlTree(text, path.string()));
  // Agents take a file whose entries are below `trainers` too.
  const spec::Value* const inner = tree.Find("trainers");
  const spec::Value& entries =
      inner != nullptr && inner->Find("command") == nullptr ? *inner : tree;
  if (!entries.is_map()) {
    return base::InvalidArgument(path.string() + ": must be a map of programs by name");
  }
  FL_ASSIGN_OR_RETURN(const nlohmann::json json, base::ParseJson(entries.ToJson(), path.string()));
  EvaluationPrograms programs;
  for (const auto& [name, entry] : json.items()) {
    base::JsonReader reader(entry, path.string() + ": " + name);
    trainer::ProcessTrainerOptions options;
    double seconds = 0;
    std::optional<std::string> folder;
    reader.Required("command", &options.command);
    reader.Optional("worker", &options.worker);
    reader.Optional("timeoutSeconds", &seconds);
    reader.Optional("env", &options.env);
    reader.Optional("workingDirectory", &folder);
    FL_RETURN_IF_ERROR(reader.status());
    if (options.command.empty() || !(seconds >= 0 && seconds < kLongestTimeout)) {
      return base::InvalidArgument(path.string() + ": " + name +
                                   (options.command.empty()
                                        ? ".command must name a program"
                                        : ".timeoutSeconds must be between 0 and 30 days"));
    }
    options.time_limit =
        std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(seconds));
    if (folder) options.working_directory = std::filesystem::absolute(path).parent_path() / *folder;
    programs[name] = std::move(options);
  }
  return programs;
}

Evaluator MakeEvaluator(EvaluationPrograms programs, base::Path work_dir, base::Path data_dir) {
  return [programs = std::move(programs), work_dir = std::move(work_dir),
          data_dir = std::filesystem::absolute(data_dir)](
             const spec::FederatedLearningJob& job, const base::Path& model,
             std::stop_token stop) -> base::Result<Metrics> {
    if (job.spec.trainer.builtin) return EvaluateBuiltin(job, model, data_dir, stop);
    const std::string name = job.spec.trainer.name.value_or("job/" + job.metadata.name);
    const auto found = programs.find(name);
    if (found == programs.end()) {
      return base::FailedPrecondition(
          "trainer \"" + name + "\" is not in the aggregator's own configuration",
          "name its program in the file given with --trainers, or let the clients evaluate");
    }
    trainer::ProcessTrainerOptions options = found->second;
    options.log_file = work_dir / "evaluation.log";
    return EvaluateByProgram(options, job, model, work_dir, data_dir, stop);
  };
}

}  // namespace fl::aggregator
