#include "spec/json.h"

#include "spec/internal/decode.h"
#include "spec/internal/object_reader.h"
#include "spec/internal/yaml_reader.h"
#include "spec/parse.h"

namespace fl::spec {
namespace {

template <typename T>
Value ToTree(const T& object) {
  Value value = internal::Encode(object);
  Value::Map& map = *value.As<Value::Map>();
  map.emplace("apiVersion", kApiVersion);
  map.emplace("kind", T::kKind);
  return value;
}

}  // namespace

Value ToValue(const FederatedModel& model) { return ToTree(model); }
Value ToValue(const FederatedClient& client) { return ToTree(client); }
Value ToValue(const FederatedLearningJob& job) { return ToTree(job); }
Value ToValue(const Object& object) {
  return std::visit([](const auto& each) { return ToTree(each); }, object);
}

std::string ToJson(const FederatedModel& model) { return ToTree(model).ToJson(); }
std::string ToJson(const FederatedClient& client) { return ToTree(client).ToJson(); }
std::string ToJson(const FederatedLearningJob& job) { return ToTree(job).ToJson(); }
std::string ToJson(const Object& object) { return ToValue(object).ToJson(); }

std::string ToYaml(const Object& object) { return ToValue(object).ToYaml(); }

base::Result<Value> ParseJson(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return base::InvalidArgument("the text has " + std::to_string(text.size()) +
                                 " bytes, at most " + std::to_string(kMaxTextBytes) +
                                 " are allowed");
  }
  internal::Tree tree = internal::ReadJson(text, 1);
  FL_RETURN_IF_ERROR(ToStatus(tree.problems));
  return std::move(tree.root);
}

template <>
base::Result<Object> FromJson(std::string_view text) {
  FL_ASSIGN_OR_RETURN(const Value tree, ParseJson(text));
  Problems problems;
  std::optional<Object> object = internal::ReadObject(tree, "", problems);
  if (text.find('\n') == std::string_view::npos) {
    for (Problem& problem : problems) problem.line = 0;  // one line: the number says nothing
  }
  FL_RETURN_IF_ERROR(ToStatus(problems));
  return *std::move(object);
}

namespace {

template <typename T>
base::Result<T> KindFromJson(std::string_view text) {
  FL_ASSIGN_OR_RETURN(Object object, FromJson<Object>(text));
  if (T* wanted = std::get_if<T>(&object)) return std::move(*wanted);
  return base::InvalidArgument("kind: must be " + std::string(T::kKind) + ", not " +
                               std::string(KindOf(object)));
}

}  // namespace

template <>
base::Result<FederatedModel> FromJson(std::string_view text) {
  return KindFromJson<FederatedModel>(text);
}
template <>
base::Result<FederatedClient> FromJson(std::string_view text) {
  return KindFromJson<FederatedClient>(text);
}
template <>
base::Result<FederatedLearningJob> FromJson(std::string_view text) {
  return KindFromJson<FederatedLearningJob>(text);
}

}  // namespace fl::spec
