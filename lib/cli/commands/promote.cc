#include <memory>

#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/target.h"

namespace fl::cli {
namespace {

struct Options {
  std::string model;
  std::string version = "latest";
  std::string output = "table";
};

base::Status Promote(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  FL_ASSIGN_OR_RETURN(const base::ModelName model, ParseModelName(options.model));
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelsClient> client, OpenModels(context));
  FL_ASSIGN_OR_RETURN(const VersionView view, client->Version(model, options.version));
  const base::VersionNumber version = view.info.version;
  FL_ASSIGN_OR_RETURN(const registry::Change change, client->Promote(model, version));
  const bool made = change == registry::Change::kMade;
  const std::string number = std::to_string(version.value());
  return format.Print(
      context, {.data =
                    spec::Value::Map{
                        {"changed", made}, {"model", model.str()}, {"version", version.value()}},
                .names = {"model/" + model.str()},
                .text = "model/" + model.str() +
                        (made ? " promoted: v" + number + "\n"
                              : " has v" + number + " promoted already; nothing changed\n")});
}

}  // namespace

Command PromoteCommand() {
  auto options = std::make_shared<Options>();
  return {
      .name = "promote",
      .summary = "Make a version of a model the promoted one",
      .description =
          "The promoted version is the current one, unless another is pinned: then promotion is\n"
          "refused until \"rollback --unpin\".",
      .examples = {{"The latest", "fl promote digits --registry ./fl-registry"},
                   {"A certain one", "fl promote digits --to-version 12"}},
      .flags = {{.names = "--to-version",
                 .value = "N",
                 .help = "The version; left out: latest",
                 .to = &options->version,
                 .completes = Completes::kVersion},
                OutputFlag(&options->output)},
      .arguments = {{.names = "MODEL",
                     .help = "Name of the model",
                     .to = &options->model,
                     .required = true,
                     .completes = Completes::kModel}},
      .uses_target = true,
      .interruptible = true,
      .run = [options](Context& context) { return Promote(*options, context); }};
}

}  // namespace fl::cli
