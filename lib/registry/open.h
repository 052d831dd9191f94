#pragma once

/// Registries by URI: `file:///srv/registry`, `file:relative/path`, or a plain path. A model's
/// repository is the folder of its name in there. `s3://` and `oci://` are kUnimplemented as yet.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "registry/repository.h"
#include "registry/store.h"

namespace fl::registry {

/// The store of `model` in the registry at `uri`; touches nothing yet. kInvalidArgument where the
/// URI is malformed or the name is not that of a model (lower-case letters, digits, '-' and '.', as
/// Kubernetes names objects); kUnimplemented.
base::Result<std::unique_ptr<ContentStore>> OpenStore(std::string_view uri,
                                                      const base::ModelName& model);

/// kNotFound where the registry has no such model, naming those it has.
base::Result<std::unique_ptr<ModelRepository>> OpenReader(std::string_view uri,
                                                          const base::ModelName& model);
/// As ModelRepository::OpenWriter.
base::Result<std::unique_ptr<ModelRepository>> OpenWriter(std::string_view uri,
                                                          const base::ModelName& model,
                                                          WriterOptions options);

/// The models of a registry, by name. kNotFound where there is no registry.
base::Result<std::vector<base::ModelName>> ListModels(std::string_view uri);

}  // namespace fl::registry
