#pragma once

/// The three kinds (group kubefl.dev, version v1alpha1) as plain structs.

#include <string_view>
#include <variant>

#include "spec/client.h"
#include "spec/job.h"
#include "spec/model.h"

namespace fl::spec {

using Object = std::variant<FederatedModel, FederatedClient, FederatedLearningJob>;

/// "FederatedModel", …
std::string_view KindOf(const Object& object);
const ObjectMeta& MetadataOf(const Object& object);

}  // namespace fl::spec
