#include <memory>

#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/target.h"

namespace fl::cli {
namespace {

struct Options {
  std::string model;
  std::string version = "current";
  std::string output = "table";
};

std::string Describe(const VersionView& view) {
  const registry::VersionInfo& info = view.info;
  std::string tags;
  for (const std::string& tag : view.tags) tags += (tags.empty() ? "" : ", ") + tag;
  std::string text;
  const auto add = [&text](std::string name, const std::string& value) {
    if (value.empty()) return;
    name += ":";
    name.resize(15, ' ');
    text += name + value + "\n";
  };
  add("version", "v" + std::to_string(info.version.value()));
  add("tags", tags);
  if (info.pruned) add("pruned", "yes, only its record is left");
  if (info.parent) add("parent", "v" + std::to_string(info.parent->version.value()));
  add("job", info.job.str());
  if (!info.job.empty()) add("round", std::to_string(info.round.value()));
  add("algorithm", info.algorithm);
  if (!info.job.empty()) add("contributors", std::to_string(info.contributors));
  add("metrics", FormatMetrics(info.metrics));
  if (info.privacy) {
    add("privacy", "epsilon " + FormatMetric(info.privacy->epsilon) + ", delta " +
                       FormatMetric(info.privacy->delta));
  }
  add("size", FormatBytes(info.weights_size));
  if (!info.weights.empty()) add("weights", info.weights.ToString());
  if (info.state) add("state", info.state->ToString());
  if (!info.manifest.empty()) add("manifest", info.manifest.ToString());
  if (!info.config_digest.empty()) add("configuration", info.config_digest.ToString());
  add("software", info.software);
  add("created", base::FormatTime(info.created));
  return text;
}

base::Status Show(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  FL_ASSIGN_OR_RETURN(const base::ModelName model, ParseModelName(options.model));
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelsClient> client, OpenModels(context));
  FL_ASSIGN_OR_RETURN(const VersionView view, client->Version(model, options.version));
  return format.Print(context, {.data = ToData(view),
                                .names = {"model/" + model.str() + "/v" +
                                          std::to_string(view.info.version.value())},
                                .text = Describe(view)});
}

}  // namespace

Command ModelsShowCommand() {
  auto options = std::make_shared<Options>();
  return {.name = "show",
          .summary = "Show one version of a model",
          .examples = {{"The current one", "fl models show digits"},
                       {"Its accuracy",
                        "fl models show digits v12 -o "
                        "jsonpath='{.metrics.accuracy}'"}},
          .flags = {OutputFlag(&options->output)},
          .arguments = {{.names = "MODEL",
                         .help = "Name of the model",
                         .to = &options->model,
                         .required = true,
                         .completes = Completes::kModel},
                        {.names = "VERSION",
                         .help = "A number, latest, promoted, pinned; left out: current",
                         .to = &options->version,
                         .completes = Completes::kVersion}},
          .uses_target = true,
          .interruptible = true,
          .run = [options](Context& context) { return Show(*options, context); }};
}

}  // namespace fl::cli
