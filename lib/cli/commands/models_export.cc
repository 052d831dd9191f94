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
  std::string version = "current";
  std::string out;
  std::string state;
};

base::Status Copy(const registry::OpenedBlob& blob, const std::string& to) {
  FL_ASSIGN_OR_RETURN(base::FileWriter writer, base::FileWriter::Create(to, blob.file.size()));
  FL_RETURN_IF_ERROR(writer.Write(blob.file.bytes()));
  return std::move(writer).Commit();
}

base::Status Export(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const base::ModelName model, ParseModelName(options.model));
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelsClient> client, OpenModels(context));
  FL_ASSIGN_OR_RETURN(const VersionView view, client->Version(model, options.version));
  const base::VersionNumber version = view.info.version;
  const std::string name = "model/" + model.str() + "/v" + std::to_string(version.value());
  FL_ASSIGN_OR_RETURN(const registry::OpenedBlob weights, client->Weights(model, version));
  if (!options.state.empty()) {
    FL_ASSIGN_OR_RETURN(const std::optional<registry::OpenedBlob> state,
                        client->State(model, version));
    if (!state) {
      return base::NotFound(name + " has no optimiser state",
                            "leave --state out: its algorithm has no memory");
    }
    FL_RETURN_IF_ERROR(Copy(*state, options.state));
  }
  FL_RETURN_IF_ERROR(Copy(weights, options.out));
  context.out << name << " exported to " << options.out << " (" << weights.digest.ToString()
              << ")\n";
  return base::OkStatus();
}

}  // namespace

Command ModelsExportCommand() {
  auto options = std::make_shared<Options>();
  return {.name = "export",
          .summary = "Write the weights of a version to a file",
          .description = "The file is byte for byte what the registry holds, checked on the way.",
          .examples = {{"The current version",
                        "fl models export digits -o digits.safetensors --registry ./fl-registry"},
                       {"A certain one, with the optimiser's state",
                        "fl models export digits v12 -o digits.safetensors --state "
                        "state.safetensors"}},
          .flags = {{.names = "-o,--output",
                     .value = "FILE",
                     .help = "Where the weights go",
                     .to = &options->out,
                     .required = true,
                     .completes = Completes::kFile},
                    {.names = "--state",
                     .value = "FILE",
                     .help = "Where the server optimiser's state goes",
                     .to = &options->state,
                     .completes = Completes::kFile}},
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
          .run = [options](Context& context) { return Export(*options, context); }};
}

}  // namespace fl::cli
