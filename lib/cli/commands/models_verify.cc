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
  std::string output = "table";
};

std::string_view Name(registry::Problem::Kind kind) {
  switch (kind) {
    case registry::Problem::Kind::kMissing:
      return "missing";
    case registry::Problem::Kind::kChanged:
      return "changed";
    case registry::Problem::Kind::kReordered:
      return "reordered";
    case registry::Problem::Kind::kInconsistent:
      return "inconsistent";
  }
  return "";
}

base::Status Verify(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  FL_ASSIGN_OR_RETURN(const base::ModelName model, ParseModelName(options.model));
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelsClient> client, OpenModels(context));
  FL_ASSIGN_OR_RETURN(const registry::VerifyReport report, client->Verify(model));
  Document document;
  spec::Value::List problems;
  for (const registry::Problem& problem : report.problems) {
    problems.emplace_back(spec::Value::Map{
        {"kind", Name(problem.kind)}, {"message", problem.message}, {"subject", problem.subject}});
    document.text +=
        problem.subject + ": " + std::string(Name(problem.kind)) + ": " + problem.message + "\n";
    document.names.push_back(problem.subject);
  }
  document.data =
      spec::Value::Map{{"bytes", static_cast<int64_t>(report.bytes)},
                       {"historyAbsent", report.history_absent},
                       {"model", model.str()},
                       {"ok", report.ok()},
                       {"problems", std::move(problems)},
                       {"pruned", report.pruned},
                       {"records", report.records},
                       {"unreferencedBlobs", static_cast<int64_t>(report.unreferenced_blobs)},
                       {"versions", report.versions}};
  const std::string checked = base::Count(report.versions, "version") + ", " +
                              base::Count(report.records, "record") + ", " +
                              FormatBytes(report.bytes);
  if (report.ok()) document.text += "model/" + model.str() + " is intact: " + checked + "\n";
  FL_RETURN_IF_ERROR(format.Print(context, document));
  if (format.ForPeople() && report.history_absent) {
    context.err << "fl: note: the history is absent: these versions were copied without it\n";
  }
  if (report.ok()) return base::OkStatus();
  return base::DataLoss(base::Count(static_cast<int64_t>(report.problems.size()), "problem") +
                            " in model \"" + model.str() + "\" (" + checked + " checked)",
                        "restore what is damaged from a copy, or roll back to a version before it");
}

}  // namespace

Command ModelsVerifyCommand() {
  auto options = std::make_shared<Options>();
  return {.name = "verify",
          .summary = "Check that every byte of a model is as it was written",
          .description =
              "Reads and hashes all versions and the chain of records. Each problem is a\n"
              "line on standard output; exits 1 if there is any.",
          .examples = {{"A registry on disk", "fl models verify digits --registry ./fl-registry"}},
          .flags = {OutputFlag(&options->output)},
          .arguments = {{.names = "MODEL",
                         .help = "Name of the model",
                         .to = &options->model,
                         .required = true,
                         .completes = Completes::kModel}},
          .uses_target = true,
          .run = [options](Context& context) { return Verify(*options, context); }};
}

}  // namespace fl::cli
