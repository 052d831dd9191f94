#include <algorithm>
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
  std::optional<int64_t> last;
  std::string output = "table";
};

base::Status History(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  FL_ASSIGN_OR_RETURN(const base::ModelName model, ParseModelName(options.model));
  if (options.last && *options.last < 1) return base::InvalidArgument("--last must be at least 1");
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelsClient> client, OpenModels(context));
  FL_ASSIGN_OR_RETURN(std::vector<VersionView> versions, client->Versions(model));
  std::reverse(versions.begin(), versions.end());
  if (options.last) {
    versions.resize(std::min(versions.size(), static_cast<size_t>(*options.last)));
  }
  Document document{.empty = "no versions"};
  document.table.columns = {{.title = "VERSION"},
                            {.title = "PARENT"},
                            {.title = "JOB"},
                            {.title = "ROUND"},
                            {.title = "CONTRIBUTORS"},
                            {.title = "METRICS"},
                            {.title = "TAGS"},
                            {.title = "AGE"},
                            {.title = "ALGORITHM", .wide = true},
                            {.title = "SIZE", .wide = true},
                            {.title = "MANIFEST", .wide = true}};
  spec::Value::List items;
  for (const VersionView& view : versions) {
    const registry::VersionInfo& info = view.info;
    const bool trained = !info.job.empty();
    std::string tags;
    for (const std::string& tag : view.tags) tags += (tags.empty() ? "" : ",") + tag;
    if (info.pruned) tags += tags.empty() ? "pruned" : ",pruned";
    const std::string number = "v" + std::to_string(info.version.value());
    document.table.rows.push_back(
        {number, info.parent ? "v" + std::to_string(info.parent->version.value()) : "",
         info.job.str(), trained ? std::to_string(info.round.value()) : "",
         trained ? std::to_string(info.contributors) : "", FormatMetrics(info.metrics), tags,
         FormatAge(info.created, context.clock->Now()), info.algorithm,
         FormatBytes(info.weights_size), info.manifest.empty() ? "" : info.manifest.ToString()});
    document.names.push_back("model/" + model.str() + "/" + number);
    items.push_back(ToData(view));
  }
  document.data = ListOf(std::move(items));
  return format.Print(context, document);
}

}  // namespace

Command ModelsHistoryCommand() {
  auto options = std::make_shared<Options>();
  return {.name = "history",
          .summary = "List the versions of a model, newest first",
          .examples = {{"Parents, rounds, contributors, metrics", "fl models history digits"},
                       {"The last five, as JSON", "fl models history digits --last 5 -o json"}},
          .flags =
              {{.names = "--last", .value = "N", .help = "Only the newest N", .to = &options->last},
               OutputFlag(&options->output)},
          .arguments = {{.names = "MODEL",
                         .help = "Name of the model",
                         .to = &options->model,
                         .required = true,
                         .completes = Completes::kModel}},
          .uses_target = true,
          .interruptible = true,
          .run = [options](Context& context) { return History(*options, context); }};
}

}  // namespace fl::cli
