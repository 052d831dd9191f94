#include "spec/config_digest.h"

#include "spec/defaults.h"
#include "spec/internal/mutability.h"
#include "spec/json.h"

namespace fl::spec {

base::Digest ConfigDigest(const FederatedLearningJob& job) {
  FederatedLearningJob complete = job;
  ApplyDefaults(complete);
  Value tree = ToValue(complete);
  Value::Map frozen;
  for (const auto& [name, value] : *tree.Find("spec")->As<Value::Map>()) {
    if (internal::AllowedChange(FederatedLearningJob::kKind, name) == internal::Change::kNone) {
      frozen.emplace(name, value);
    }
  }
  return base::Digest::Of(Value(std::move(frozen)).ToJson());
}

}  // namespace fl::spec
