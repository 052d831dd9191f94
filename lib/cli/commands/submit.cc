#include <memory>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/target.h"

namespace fl::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string output = "table";
};

/// What was said about each object, printed as it comes: of a submission that fails in the middle
/// the user sees what was done.
class Results {
 public:
  Results(Context& context, OutputFormat format) : context_(context), format_(std::move(format)) {}

  void Add(std::string_view kind, const std::string& name, ApplyResult result) {
    const std::string full = std::string(kind) + "/" + name;
    if (format_.ForPeople()) {
      context_.out << full << " " << Name(result) << "\n";
      context_.out.flush();
    }
    names_.push_back(full);
    items_.emplace_back(spec::Value::Map{{"kind", kind}, {"name", name}, {"result", Name(result)}});
  }

  base::Status Print() {
    if (format_.ForPeople()) return base::OkStatus();
    return format_.Print(context_, {.data = spec::Value::Map{{"items", std::move(items_)}},
                                    .names = std::move(names_)});
  }

 private:
  Context& context_;
  const OutputFormat format_;
  spec::Value::List items_;
  std::vector<std::string> names_;
};

base::Status Submit(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(OutputFormat format, OutputFormat::Parse(options.output));
  FL_ASSIGN_OR_RETURN(const spec::ParseResult parsed, ReadObjects(context, options.files));
  if (!parsed.problems.empty()) {
    for (const spec::Problem& problem : parsed.problems) context.err << problem.ToString() << "\n";
    return base::InvalidArgument(
        base::Count(static_cast<int64_t>(parsed.problems.size()), "problem") +
        " found; nothing was submitted");
  }
  if (parsed.documents.empty()) {
    return base::InvalidArgument("nothing to submit: the input holds no objects");
  }
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<JobsClient> client, OpenJobs(context));
  Results results(context, std::move(format));
  // A job needs its model and its clients, in whatever order they stand in the files.
  std::vector<spec::FederatedClient> clients;
  std::vector<const spec::FederatedLearningJob*> jobs;
  for (const spec::Document& document : parsed.documents) {
    if (const auto* model = std::get_if<spec::FederatedModel>(&document.object)) {
      FL_ASSIGN_OR_RETURN(const ApplyResult result, client->Apply(*model));
      results.Add("model", model->metadata.name, result);
    } else if (const auto* one = std::get_if<spec::FederatedClient>(&document.object)) {
      clients.push_back(*one);
    } else {
      jobs.push_back(&std::get<spec::FederatedLearningJob>(document.object));
    }
  }
  if (!clients.empty()) {
    FL_ASSIGN_OR_RETURN(const std::vector<ApplyResult> applied, client->Apply(clients));
    for (size_t i = 0; i < clients.size(); ++i) {
      results.Add("client", clients[i].metadata.name, applied[i]);
    }
  }
  for (const spec::FederatedLearningJob* job : jobs) {
    FL_ASSIGN_OR_RETURN(const ApplyResult result, client->Apply(*job));
    results.Add("job", job->metadata.name, result);
  }
  return results.Print();
}

}  // namespace

Command SubmitCommand() {
  auto options = std::make_shared<Options>();
  return {.name = "submit",
          .summary = "Give models, clients and jobs to an aggregator",
          .description =
              "Gives the objects in the right order and says for each whether it was created,\n"
              "configured or unchanged. Safe to repeat: the same files again change nothing.\n"
              "Clients are added to those that are there.",
          .examples = {{"A job with all it needs",
                        "fl submit -f federation/ --aggregator https://localhost:8443 --ca-file "
                        "ca.crt --token-file admin.token"},
                       {"Then follow it", "fl status digits -w --exit-on-finish"}},
          .flags = {FilenameFlag(&options->files), OutputFlag(&options->output)},
          .uses_target = true,
          .interruptible = true,
          .run = [options](Context& context) { return Submit(*options, context); }};
}

}  // namespace fl::cli
