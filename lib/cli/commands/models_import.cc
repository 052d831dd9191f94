#include <memory>
#include <optional>

#include "cli/commands/commands.h"
#include "cli/input.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/target.h"
#include "tensor/safetensors.h"
#include "tensor/signature.h"

namespace fl::cli {
namespace {

struct Options {
  std::string model;
  std::string file;
  std::string output = "table";
};

/// What the new version goes on from: the latest one, whose tensors it must have.
base::Result<std::optional<registry::VersionRef>> Parent(ModelsClient& client,
                                                         const base::ModelName& model,
                                                         const tensor::SafetensorsFile& file) {
  using Found = std::optional<registry::VersionRef>;
  const base::Result<VersionView> latest = client.Version(model, "latest");
  if (!latest.ok()) {
    if (latest.status().code() == base::Code::kNotFound) return Found();
    return latest.status();
  }
  FL_ASSIGN_OR_RETURN(const registry::OpenedBlob weights,
                      client.Weights(model, latest->info.version));
  FL_ASSIGN_OR_RETURN(const tensor::SafetensorsFile before,
                      tensor::SafetensorsFile::Open(weights.path));
  FL_RETURN_IF_ERROR(
      tensor::CheckSameSignature(before.header(), file.header()).WithContext(file.path().string()));
  return Found(registry::VersionRef{latest->info.version, latest->info.manifest});
}

base::Status Import(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  FL_ASSIGN_OR_RETURN(const base::ModelName model, ParseModelName(options.model));
  const base::Result<tensor::SafetensorsFile> file = tensor::SafetensorsFile::Open(options.file);
  if (!file.ok()) return AboutInput(file.status());
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelsClient> client, OpenModels(context));
  registry::PublishRequest request;
  FL_ASSIGN_OR_RETURN(request.parent, Parent(*client, model, *file));
  request.weights.path = options.file;
  FL_ASSIGN_OR_RETURN(const registry::VersionInfo info, client->Publish(model, request));
  const std::string name = "model/" + model.str() + "/v" + std::to_string(info.version.value());
  return format.Print(
      context,
      {.data = ToData(VersionView{info, {}}), .names = {name}, .text = name + " imported\n"});
}

}  // namespace

Command ModelsImportCommand() {
  auto options = std::make_shared<Options>();
  return {.name = "import",
          .summary = "Make a version of the weights in a file",
          .description =
              "The next version of the model, or version 0 of a new one. The tensors must\n"
              "be those of the version before.",
          .examples = {{"Weights that were trained elsewhere",
                        "fl models import digits weights.safetensors --registry ./fl-registry"}},
          .flags = {OutputFlag(&options->output)},
          .arguments = {{.names = "MODEL",
                         .help = "Name of the model",
                         .to = &options->model,
                         .required = true,
                         .completes = Completes::kModel},
                        {.names = "FILE",
                         .help = "A safetensors file",
                         .to = &options->file,
                         .required = true,
                         .completes = Completes::kFile}},
          .uses_target = true,
          .run = [options](Context& context) { return Import(*options, context); }};
}

}  // namespace fl::cli
