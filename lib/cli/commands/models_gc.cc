#include <memory>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/target.h"

namespace fl::cli {
namespace {

struct Options {
  std::string model;
  int64_t keep_last = 10;
  bool dry_run = false;
  std::string output = "table";
};

base::Status Collect(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  FL_ASSIGN_OR_RETURN(const base::ModelName model, ParseModelName(options.model));
  if (options.keep_last < 1) return base::InvalidArgument("--keep-last must be at least 1");
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelsClient> client, OpenModels(context));
  FL_ASSIGN_OR_RETURN(
      const registry::RetentionReport report,
      client->Collect(model, {.keep_last = options.keep_last, .dry_run = options.dry_run}));
  Document document;
  spec::Value::List pruned;
  for (const base::VersionNumber version : report.pruned) {
    pruned.emplace_back(version.value());
    document.names.push_back("model/" + model.str() + "/v" + std::to_string(version.value()));
    document.text += document.names.back() + (options.dry_run ? " would be pruned\n" : " pruned\n");
  }
  document.text += std::string(options.dry_run ? "would remove " : "removed ") +
                   base::Count(static_cast<int64_t>(report.blobs), "blob") + ", " +
                   FormatBytes(report.bytes) + "\n";
  document.data = spec::Value::Map{{"blobs", static_cast<int64_t>(report.blobs)},
                                   {"bytes", static_cast<int64_t>(report.bytes)},
                                   {"dryRun", options.dry_run},
                                   {"model", model.str()},
                                   {"pruned", std::move(pruned)}};
  return format.Print(context, document);
}

}  // namespace

Command ModelsGcCommand() {
  auto options = std::make_shared<Options>();
  return {
      .name = "gc",
      .summary = "Remove old versions, and what nothing refers to",
      .description =
          "Never removed: the latest, pinned and promoted versions and their parents, and what\n"
          "any other tag names. Of a removed version the record stays.",
      .examples = {{"See first", "fl models gc digits --keep-last 20 --dry-run"},
                   {"Then do it", "fl models gc digits --keep-last 20"}},
      .flags = {{.names = "--keep-last",
                 .value = "N",
                 .help = "Newest versions to keep (10)",
                 .to = &options->keep_last},
                {.names = "--dry-run",
                 .help = "Only say what would be removed",
                 .to = &options->dry_run},
                OutputFlag(&options->output)},
      .arguments = {{.names = "MODEL",
                     .help = "Name of the model",
                     .to = &options->model,
                     .required = true,
                     .completes = Completes::kModel}},
      .uses_target = true,
      .run = [options](Context& context) { return Collect(*options, context); }};
}

}  // namespace fl::cli
