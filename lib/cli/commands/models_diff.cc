#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "cli/commands/commands.h"
#include "cli/internal/tensor_change.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/target.h"

namespace fl::cli {
namespace {

struct Options {
  std::string model;
  std::string from;
  std::string to;
  std::string output = "table";
};

/// Infinity has no JSON; null stands for it.
spec::Value Finite(double value) {
  return std::isfinite(value) ? spec::Value(value) : spec::Value();
}

base::Result<std::vector<internal::TensorChange>> Changes(ModelsClient& client,
                                                          const base::ModelName& model,
                                                          const VersionView& from,
                                                          const VersionView& to) {
  FL_ASSIGN_OR_RETURN(const registry::OpenedBlob a, client.Weights(model, from.info.version));
  FL_ASSIGN_OR_RETURN(const registry::OpenedBlob b, client.Weights(model, to.info.version));
  FL_ASSIGN_OR_RETURN(const tensor::SafetensorsFile file_a, tensor::SafetensorsFile::Open(a.path));
  FL_ASSIGN_OR_RETURN(const tensor::SafetensorsFile file_b, tensor::SafetensorsFile::Open(b.path));
  return internal::CompareTensors(file_a, file_b);
}

/// Metrics of both, side by side.
void AddMetrics(const VersionView& from, const VersionView& to, Table* table,
                spec::Value::Map* data) {
  std::set<std::string> names;
  for (const VersionView* view : {&from, &to}) {
    for (const auto& [name, value] : view->info.metrics) names.insert(name);
  }
  table->columns = {{.title = "METRIC"},
                    {.title = "v" + std::to_string(from.info.version.value()), .right = true},
                    {.title = "v" + std::to_string(to.info.version.value()), .right = true},
                    {.title = "CHANGE", .right = true}};
  for (const std::string& name : names) {
    const auto before = from.info.metrics.find(name);
    const auto after = to.info.metrics.find(name);
    const bool in_from = before != from.info.metrics.end();
    const bool in_to = after != to.info.metrics.end();
    std::string change;
    if (in_from && in_to) {
      const double difference = after->second - before->second;
      change = (difference >= 0 ? "+" : "") + FormatMetric(difference);
    }
    table->rows.push_back({name, in_from ? FormatMetric(before->second) : "",
                           in_to ? FormatMetric(after->second) : "", change});
    data->emplace(name,
                  spec::Value::Map{{"from", in_from ? spec::Value(before->second) : spec::Value()},
                                   {"to", in_to ? spec::Value(after->second) : spec::Value()}});
  }
}

base::Status Diff(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  FL_ASSIGN_OR_RETURN(const base::ModelName model, ParseModelName(options.model));
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelsClient> client, OpenModels(context));
  FL_ASSIGN_OR_RETURN(const VersionView from, client->Version(model, options.from));
  FL_ASSIGN_OR_RETURN(const VersionView to, client->Version(model, options.to));
  FL_ASSIGN_OR_RETURN(const std::vector<internal::TensorChange> changes,
                      Changes(*client, model, from, to));

  Document document;
  Table metrics;
  spec::Value::Map metrics_data;
  AddMetrics(from, to, &metrics, &metrics_data);
  Table tensors;
  tensors.columns = {{.title = "TENSOR"},
                     {.title = "L2", .right = true},
                     {.title = "RELATIVE", .right = true},
                     {.title = "MAX", .right = true},
                     {.title = "CHANGED"},
                     {.title = "NOTE"}};
  spec::Value::List tensors_data;
  double squares = 0;
  for (const internal::TensorChange& change : changes) {
    spec::Value::Map entry{{"elements", static_cast<int64_t>(change.elements)},
                           {"tensor", change.tensor}};
    if (!change.note.empty()) {
      tensors.rows.push_back({change.tensor, "", "", "", "", change.note});
      entry.emplace("note", change.note);
    } else {
      squares += change.l2 * change.l2;
      tensors.rows.push_back(
          {change.tensor, FormatMetric(change.l2), FormatMetric(change.relative),
           FormatMetric(change.max),
           std::to_string(change.changed) + "/" + std::to_string(change.elements), ""});
      entry.emplace("l2", Finite(change.l2));
      entry.emplace("relative", Finite(change.relative));
      entry.emplace("max", Finite(change.max));
      entry.emplace("changed", static_cast<int64_t>(change.changed));
    }
    tensors_data.emplace_back(std::move(entry));
    document.names.push_back(change.tensor);
  }
  const double l2 = std::sqrt(squares);
  document.text = metrics.ToText(true);
  if (!document.text.empty()) document.text += "\n";
  document.text += tensors.ToText(true) + "\nall tensors: L2 " + FormatMetric(l2) + "\n";
  document.data =
      spec::Value::Map{{"from", from.info.version.value()},  {"l2", Finite(l2)},
                       {"metrics", std::move(metrics_data)}, {"model", model.str()},
                       {"tensors", std::move(tensors_data)}, {"to", to.info.version.value()}};
  return format.Print(context, document);
}

}  // namespace

Command ModelsDiffCommand() {
  auto options = std::make_shared<Options>();
  return {.name = "diff",
          .summary = "Compare two versions of a model: norms of change by tensor, metrics",
          .examples = {{"What the last round did", "fl models diff digits v11 v12"},
                       {"Against what is promoted", "fl models diff digits promoted latest"}},
          .flags = {OutputFlag(&options->output)},
          .arguments = {{.names = "MODEL",
                         .help = "Name of the model",
                         .to = &options->model,
                         .required = true,
                         .completes = Completes::kModel},
                        {.names = "FROM",
                         .help = "A number, latest, promoted, pinned or current",
                         .to = &options->from,
                         .required = true,
                         .completes = Completes::kVersion},
                        {.names = "TO",
                         .help = "The same",
                         .to = &options->to,
                         .required = true,
                         .completes = Completes::kVersion}},
          .uses_target = true,
          .run = [options](Context& context) { return Diff(*options, context); }};
}

}  // namespace fl::cli
