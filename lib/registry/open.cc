#include "registry/open.h"

#include <algorithm>
#include <utility>

#include "registry/disk_store.h"

namespace fl::registry {
namespace {

using base::Result;
using base::Status;

/// The folder that `uri` names.
Result<base::Path> ParseUri(std::string_view uri) {
  const std::string text(uri);
  for (const std::string_view scheme : {"s3://", "oci://"}) {
    if (uri.starts_with(scheme)) {
      return base::Unimplemented(
          "registry " + text + ": " + std::string(scheme) + " is not supported yet",
          "use a folder: file:///PATH");
    }
  }
  if (uri.starts_with("file:")) {
    uri.remove_prefix(5);
    if (uri.starts_with("//")) {
      uri.remove_prefix(2);
      if (!uri.starts_with('/')) {
        return base::InvalidArgument(
            "registry " + text + ": file:// takes an absolute path and no host",
            "write file:///absolute/path or file:relative/path");
      }
    }
  } else if (uri.find("://") != std::string_view::npos) {
    return base::InvalidArgument("registry " + text + ": unknown kind of URI",
                                 "use file:///PATH, s3://BUCKET/PREFIX or oci://HOST/REPOSITORY");
  }
  if (uri.empty()) return base::InvalidArgument("registry \"" + text + "\" names no folder");
  return base::Path(uri);
}

/// The rule for Kubernetes' names of objects (RFC 1123 subdomains), which OCI repositories take
/// too.
bool IsModelName(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  char before = '.';
  for (const char c : name) {
    const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    // Each label between dots begins and ends with a letter or digit.
    if (!alphanumeric && (before == '.' || (c != '-' && c != '.'))) return false;
    if (c == '.' && before == '-') return false;
    before = c;
  }
  return before != '.' && before != '-';
}

bool IsRepository(const base::Path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / "index.json", ignored);
}

}  // namespace

Result<std::unique_ptr<ContentStore>> OpenStore(std::string_view uri,
                                                const base::ModelName& model) {
  FL_ASSIGN_OR_RETURN(const base::Path registry, ParseUri(uri));
  if (!IsModelName(model.str())) {
    return base::InvalidArgument("\"" + model.str() + "\" is not the name of a model",
                                 "use lower-case letters, digits, '-' and '.', at most 253");
  }
  return std::unique_ptr<ContentStore>(std::make_unique<DiskStore>(registry / model.str()));
}

Result<std::unique_ptr<ModelRepository>> OpenReader(std::string_view uri,
                                                    const base::ModelName& model) {
  FL_ASSIGN_OR_RETURN(std::unique_ptr<ContentStore> store, OpenStore(uri, model));
  Result<std::unique_ptr<ModelRepository>> opened = ModelRepository::OpenReader(std::move(store));
  if (opened.status().code() != base::Code::kNotFound) return opened;
  FL_ASSIGN_OR_RETURN(const std::vector<base::ModelName> models, ListModels(uri));
  std::string known;
  for (const base::ModelName& name : models) known += (known.empty() ? "" : ", ") + name.str();
  return base::NotFound("there is no model \"" + model.str() + "\" in registry " + std::string(uri),
                        known.empty() ? "it has no models" : "it has: " + known);
}

Result<std::unique_ptr<ModelRepository>> OpenWriter(std::string_view uri,
                                                    const base::ModelName& model,
                                                    WriterOptions options) {
  FL_ASSIGN_OR_RETURN(std::unique_ptr<ContentStore> store, OpenStore(uri, model));
  return ModelRepository::OpenWriter(std::move(store), std::move(options));
}

Result<std::vector<base::ModelName>> ListModels(std::string_view uri) {
  FL_ASSIGN_OR_RETURN(const base::Path registry, ParseUri(uri));
  std::vector<base::ModelName> models;
  std::error_code error;
  for (std::filesystem::directory_iterator it(registry, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (IsModelName(name) && IsRepository(it->path())) models.emplace_back(name);
  }
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) {
    return base::NotFound("there is no registry at " + std::string(uri),
                          "name it with --registry URI");
  }
  if (error) return base::FromErrno(error.value(), "list " + registry.string());
  std::ranges::sort(models);
  return models;
}

}  // namespace fl::registry
