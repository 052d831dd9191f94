#include <memory>
#include <optional>

#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/target.h"

namespace fl::cli {
namespace {

struct Options {
  std::string model;
  std::optional<std::string> to_version;
  bool unpin = false;
  std::string output = "table";
};

std::string Text(const std::optional<base::VersionNumber>& version) {
  return version ? "v" + std::to_string(version->value()) : "none";
}

spec::Value Data(const std::optional<base::VersionNumber>& version) {
  return version ? spec::Value(version->value()) : spec::Value();
}

base::Status Rollback(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  FL_ASSIGN_OR_RETURN(const base::ModelName model, ParseModelName(options.model));
  if (options.unpin && options.to_version) {
    return base::InvalidArgument("--unpin and --to-version exclude each other");
  }
  std::optional<base::VersionNumber> version;
  if (options.to_version) {
    FL_ASSIGN_OR_RETURN(version, ParseVersion(*options.to_version));
  }
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelsClient> client, OpenModels(context));
  FL_ASSIGN_OR_RETURN(const PinResult result,
                      options.unpin ? client->Unpin(model) : client->Pin(model, version));
  Document document;
  document.data = spec::Value::Map{{"changed", result.changed},
                                   {"from", Data(result.from)},
                                   {"model", model.str()},
                                   {"to", Data(result.to)}};
  document.names = {"model/" + model.str()};
  document.text = "model/" + model.str();
  if (!result.changed) {
    document.text += options.unpin ? " is not pinned" : " is at " + Text(result.to) + " already";
    document.text += "; nothing changed\n";
  } else {
    document.text += (options.unpin ? " unpinned: " : " rolled back: ") + Text(result.from) +
                     " -> " + Text(result.to) + (options.unpin ? "\n" : " (pinned)\n");
  }
  return format.Print(context, document);
}

}  // namespace

Command RollbackCommand() {
  auto options = std::make_shared<Options>();
  return {
      .name = "rollback",
      .summary = "Make an older version of a model the current one",
      .description =
          "Pins the version: it stays current, whatever is trained or promoted, until --unpin.\n"
          "Without --to-version it is the one that was current before. The version is read and\n"
          "checked first; the optimiser's state goes back with it.",
      .examples = {{"To the version before", "fl rollback digits --registry ./fl-registry"},
                   {"To a certain one", "fl rollback digits --to-version 12"},
                   {"Back to the promoted or latest one", "fl rollback digits --unpin"}},
      .flags = {{.names = "--to-version",
                 .value = "N",
                 .help = "The version, e.g. 3 or v3",
                 .to = &options->to_version,
                 .completes = Completes::kVersion},
                {.names = "--unpin", .help = "Take the pin off", .to = &options->unpin},
                OutputFlag(&options->output)},
      .arguments = {{.names = "MODEL",
                     .help = "Name of the model",
                     .to = &options->model,
                     .required = true,
                     .completes = Completes::kModel}},
      .uses_target = true,
      .interruptible = true,
      .run = [options](Context& context) { return Rollback(*options, context); }};
}

}  // namespace fl::cli
