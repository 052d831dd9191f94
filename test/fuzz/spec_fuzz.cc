// Reads bytes as YAML and as JSON. Whatever they are, the parser ends, and what it takes comes back
// the same from the JSON and the YAML that are written of it.

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/encoding.h"
#include "spec/config_digest.h"
#include "spec/dataset_uri.h"
#include "spec/defaults.h"
#include "spec/json.h"
#include "spec/parse.h"
#include "spec/validate.h"

namespace {

void CheckObject(const fl::spec::Object& object) {
  const std::string json = fl::spec::ToJson(object);
  const fl::base::Result<fl::spec::Object> from_json = fl::spec::FromJson<fl::spec::Object>(json);
  FL_CHECK_MSG(from_json.ok(), json + "\n" + from_json.status().ToString());
  FL_CHECK_MSG(fl::spec::ToJson(*from_json) == json, json);

  const std::string yaml = fl::spec::ToYaml(object);
  const fl::spec::ParseResult from_yaml = fl::spec::ParseYaml(yaml, "");
  FL_CHECK_MSG(from_yaml.problems.empty(),
               yaml + "\n" + fl::spec::ToStatus(from_yaml.problems).ToString());
  FL_CHECK_MSG(from_yaml.documents.size() == 1, yaml);
  FL_CHECK_MSG(fl::spec::ToJson(from_yaml.documents[0].object) == json, yaml);

  fl::spec::Object complete = object;
  fl::spec::ApplyDefaults(complete);
  const fl::spec::Problems problems = fl::spec::Validate(complete);
  FL_CHECK_MSG(problems.empty(), json + "\n" + fl::spec::ToStatus(problems).ToString());
  FL_CHECK_MSG(fl::spec::ValidateUpdate(object, complete).empty(), json);
  if (const auto* job = std::get_if<fl::spec::FederatedLearningJob>(&object)) {
    FL_CHECK(fl::spec::ConfigDigest(*job) ==
             fl::spec::ConfigDigest(std::get<fl::spec::FederatedLearningJob>(complete)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fl::base::AsText({data, size});
  for (const fl::spec::Document& document : fl::spec::ParseYaml(text, "fuzz").documents) {
    CheckObject(document.object);
  }
  if (const fl::base::Result<fl::spec::Value> value = fl::spec::ParseJson(text); value.ok()) {
    FL_CHECK(*fl::spec::ParseJson(value->ToJson()) == *value);
  }
  if (const fl::base::Result<fl::spec::DatasetUri> uri = fl::spec::DatasetUri::Parse(text);
      uri.ok()) {
    FL_CHECK(*fl::spec::DatasetUri::Parse(uri->ToString()) == *uri);
  }
  return 0;
}
