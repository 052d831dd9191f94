#include "spec/internal/decode.h"
#include "spec/internal/fields.h"

namespace fl::spec::internal {
namespace {

/// Writes what is set: an absent optional, an empty string, list or map, false, and a section
/// without fields are left out; required numbers and names never are.
class Writer {
 public:
  Value Take() { return Value(std::move(map_)); }

  void Required(std::string_view name, const auto& member, const Rule& /*rule*/ = {}) {
    map_.emplace(name, Write(member));
  }
  void Optional(std::string_view name, const auto& member, const Rule& /*rule*/ = {}) {
    Value value = Write(member);
    if (!IsUnset(value)) map_.emplace(name, std::move(value));
  }
  template <typename T>
  void Optional(std::string_view name, const std::optional<T>& member, const Rule& /*rule*/ = {}) {
    if (member) map_.emplace(name, Write(*member));
  }
  void Optional(std::string_view name, const Value& member) {
    if (!member.is_null()) map_.emplace(name, member);
  }
  void Ignored(std::initializer_list<std::string_view> /*names*/) {}

 private:
  static bool IsUnset(const Value& value) {
    if (const bool* flag = value.As<bool>()) return !*flag;
    if (const int64_t* number = value.As<int64_t>()) return *number == 0;
    if (const std::string* text = value.As<std::string>()) return text->empty();
    if (const Value::List* list = value.As<Value::List>()) return list->empty();
    if (const Value::Map* map = value.As<Value::Map>()) return map->empty();
    return value.is_null();
  }

  static Value Write(bool value) { return Value(value); }
  static Value Write(int64_t value) { return Value(value); }
  static Value Write(const std::string& value) { return Value(value); }
  static Value Write(const Fraction& value) { return Value(value.text()); }
  static Value Write(const Quantity& value) { return Value(value.text); }
  static Value Write(const Value::Map& value) { return Value(value); }
  template <NamedEnum E>
  static Value Write(E value) {
    return Value(Name(value));
  }
  template <typename T>
  static Value Write(const std::vector<T>& values) {
    Value::List list;
    for (const T& value : values) list.push_back(Write(value));
    return Value(std::move(list));
  }
  template <typename T>
  static Value Write(const std::map<std::string, T>& values) {
    Value::Map map;
    for (const auto& [key, value] : values) map.emplace(key, Write(value));
    return Value(std::move(map));
  }
  template <typename T>
    requires requires(Writer& writer, const T& value) { Fields(writer, value); }
  static Value Write(const T& value) {
    Writer inner;
    Fields(inner, value);
    return inner.Take();
  }

  Value::Map map_;
};

}  // namespace

template <typename T>
Value Encode(const T& object) {
  Writer writer;
  Fields(writer, object);
  return writer.Take();
}

template Value Encode(const FederatedModel&);
template Value Encode(const FederatedClient&);
template Value Encode(const FederatedLearningJob&);

}  // namespace fl::spec::internal
