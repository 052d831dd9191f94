#include <memory>
#include <set>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/input.h"
#include "cli/output.h"

namespace fl::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string output = "table";
};

spec::Value ToData(const spec::ParseResult& result) {
  spec::Value::List problems;
  for (const spec::Problem& problem : result.problems) {
    problems.emplace_back(spec::Value::Map{{"file", problem.source},
                                           {"line", problem.line},
                                           {"message", problem.message},
                                           {"path", problem.path}});
  }
  spec::Value::List objects;
  for (const spec::Document& document : result.documents) {
    objects.emplace_back(spec::Value::Map{{"file", document.source},
                                          {"kind", spec::KindOf(document.object)},
                                          {"line", document.line},
                                          {"name", spec::MetadataOf(document.object).name}});
  }
  return spec::Value::Map{{"objects", std::move(objects)},
                          {"problems", std::move(problems)},
                          {"valid", result.problems.empty() && !result.documents.empty()}};
}

base::Status Validate(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  FL_ASSIGN_OR_RETURN(const spec::ParseResult result, ReadObjects(context, options.files));
  Document document{.data = ToData(result)};
  for (const spec::Problem& problem : result.problems) {
    document.text += problem.ToString() + "\n";
  }
  for (const spec::Document& valid : result.documents) {
    const std::string name =
        std::string(spec::KindOf(valid.object)) + "/" + spec::MetadataOf(valid.object).name;
    document.names.push_back(name);
    if (result.problems.empty()) {
      document.text +=
          valid.source + ":" + std::to_string(valid.line) + ": " + name + " is valid\n";
    }
  }
  FL_RETURN_IF_ERROR(format.Print(context, document));
  if (!result.problems.empty()) {
    return base::InvalidArgument(
        base::Count(static_cast<int64_t>(result.problems.size()), "problem") + " found");
  }
  if (result.documents.empty()) {
    return base::InvalidArgument(
        "nothing to validate: the input holds no objects",
        "\"" + context.program + " generate job\" prints one to start from");
  }
  return base::OkStatus();
}

}  // namespace

Command ValidateCommand() {
  auto options = std::make_shared<Options>();
  return {
      .name = "validate",
      .summary = "Check YAML files without a cluster",
      .description =
          "Reads every document and checks every field. Each problem is a line on standard\n"
          "output, FILE:LINE: path: message. Objects need not contain what they refer to.\n"
          "Exits 4 if there is any problem, or nothing to validate.",
      .examples = {{"Check one file", "fl validate -f job.yaml"},
                   {"Check all files of a folder", "fl validate -f federation/"},
                   {"Check what another program writes", "kustomize build . | fl validate -f -"}},
      .flags = {FilenameFlag(&options->files), OutputFlag(&options->output)},
      .run = [options](Context& context) { return Validate(*options, context); }};
}

}  // namespace fl::cli
