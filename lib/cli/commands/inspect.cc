#include <limits>
#include <memory>

#include "base/digest.h"
#include "cli/commands/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "tensor/dtype.h"
#include "tensor/safetensors.h"

namespace fl::cli {
namespace {

struct Options {
  std::string file;
  std::string output = "table";
};

/// Whole numbers past int64 (only dimensions of empty tensors can be) stay exact as text.
spec::Value Whole(uint64_t number) {
  if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return std::to_string(number);
  }
  return static_cast<int64_t>(number);
}

base::Status Inspect(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  const base::Result<tensor::SafetensorsFile> opened = tensor::SafetensorsFile::Open(options.file);
  if (!opened.ok()) return AboutInput(opened.status());
  const tensor::SafetensorsFile& file = *opened;

  Document document;
  document.table.columns = {{.title = "TENSOR"},
                            {.title = "DTYPE"},
                            {.title = "SHAPE"},
                            {.title = "ELEMENTS", .right = true},
                            {.title = "BYTES", .right = true},
                            {.title = "NON-FINITE", .right = true}};
  spec::Value::List tensors;
  uint64_t elements = 0;
  uint64_t non_finite = 0;
  for (const tensor::TensorInfo& info : file.header().tensors()) {
    const size_t bad = tensor::CountNonFinite(info.dtype, file.Data(info));
    elements += info.element_count();
    non_finite += bad;
    spec::Value::List shape;
    for (const uint64_t dimension : info.shape) shape.push_back(Whole(dimension));
    tensors.emplace_back(spec::Value::Map{{"bytes", Whole(info.byte_size())},
                                          {"dtype", tensor::Name(info.dtype)},
                                          {"elements", Whole(info.element_count())},
                                          {"name", info.name},
                                          {"nonFinite", Whole(bad)},
                                          {"shape", std::move(shape)}});
    document.table.rows.push_back({info.name, std::string(tensor::Name(info.dtype)),
                                   tensor::ShapeToString(info.shape),
                                   std::to_string(info.element_count()),
                                   std::to_string(info.byte_size()), std::to_string(bad)});
    document.names.push_back(info.name);
  }
  spec::Value::Map metadata;
  for (const auto& [key, value] : file.header().metadata()) metadata.emplace(key, value);
  const base::Digest digest = base::Digest::Of(file.bytes());
  const uint64_t size = file.bytes().size();

  document.text = "file:       " + options.file + "\ndigest:     " + digest.ToString() +
                  "\nsize:       " + std::to_string(size) + " (" + FormatBytes(size) + ")" +
                  "\ntensors:    " + std::to_string(tensors.size()) +
                  "\nelements:   " + std::to_string(elements) +
                  "\nnon-finite: " + std::to_string(non_finite) + "\n";
  for (const auto& [key, value] : file.header().metadata()) {
    document.text += "metadata:   " + key + "=" + value + "\n";
  }
  if (!document.table.rows.empty()) document.text += "\n" + document.table.ToText(true);
  document.data = spec::Value::Map{
      {"digest", digest.ToString()},     {"elements", Whole(elements)},    {"file", options.file},
      {"metadata", std::move(metadata)}, {"nonFinite", Whole(non_finite)}, {"size", Whole(size)},
      {"tensors", std::move(tensors)}};
  return format.Print(context, document);
}

}  // namespace

Command InspectCommand() {
  auto options = std::make_shared<Options>();
  return {
      .name = "inspect",
      .summary = "Show what a safetensors file holds",
      .description =
          "Tensors with dtype and shape, metadata, the digest of the file, and how\n"
          "many values are NaN or infinite. A file that is not well-formed exits 4\n"
          "and says what is wrong with it.",
      .examples = {{"Look at a model", "fl inspect model.safetensors"},
                   {"The digest alone", "fl inspect model.safetensors -o jsonpath='{.digest}'"}},
      .flags = {OutputFlag(&options->output)},
      .arguments = {{.names = "FILE",
                     .help = "A safetensors file",
                     .to = &options->file,
                     .required = true,
                     .completes = Completes::kFile}},
      .run = [options](Context& context) { return Inspect(*options, context); }};
}

}  // namespace fl::cli
