#pragma once

/// A tree of scalars, lists and maps: what a YAML or JSON document holds before it has a meaning,
/// and what a trainer's config keeps. Values are plain data; one may be read from many threads.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fl::spec {

class Value {
 public:
  using List = std::vector<Value>;
  /// Sorted by key, so that every text made from a Value is canonical.
  using Map = std::map<std::string, Value, std::less<>>;
  /// The order of the alternatives is the order of `Type`.
  using Data = std::variant<std::monostate, bool, int64_t, double, std::string, List, Map>;
  enum class Type { kNull, kBool, kInt, kDouble, kString, kList, kMap };

  Value() = default;
  Value(bool value) : data_(value) {}                    // NOLINT(google-explicit-constructor)
  Value(int64_t value) : data_(value) {}                 // NOLINT(google-explicit-constructor)
  Value(int value) : data_(int64_t{value}) {}            // NOLINT(google-explicit-constructor)
  Value(double value) : data_(value) {}                  // NOLINT(google-explicit-constructor)
  Value(std::string value) : data_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  // NOLINTNEXTLINE(google-explicit-constructor)
  Value(std::string_view value) : data_(std::string(value)) {}
  Value(const char* value) : data_(std::string(value)) {}  // NOLINT(google-explicit-constructor)
  Value(List value) : data_(std::move(value)) {}           // NOLINT(google-explicit-constructor)
  Value(Map value) : data_(std::move(value)) {}            // NOLINT(google-explicit-constructor)

  Type type() const { return static_cast<Type>(data_.index()); }
  bool is_null() const { return type() == Type::kNull; }
  bool is_string() const { return type() == Type::kString; }
  bool is_list() const { return type() == Type::kList; }
  bool is_map() const { return type() == Type::kMap; }

  /// The content where the type is the one asked for, else nullptr.
  template <typename T>
  const T* As() const {
    return std::get_if<T>(&data_);
  }
  template <typename T>
  T* As() {
    return std::get_if<T>(&data_);
  }
  /// The member `key` of a map, else nullptr.
  const Value* Find(std::string_view key) const;

  /// The line of the source where it stands (a map's member: where its key stands), from 1; 0 where
  /// it came from no text. Not part of the value: equality leaves it out.
  int line() const { return line_; }
  void set_line(int line) { line_ = line; }

  /// Compact JSON with sorted keys. A double keeps a point or an exponent ("1.0"), so that it is
  /// read as a double again; one that is not finite (no parser lets it through) becomes null.
  std::string ToJson() const;
  /// ToJson with line breaks and `indent` spaces a level.
  std::string ToPrettyJson(int indent) const;
  /// Block-style YAML that reads back as the same Value, here and in kubectl.
  std::string ToYaml() const;

  friend bool operator==(const Value& a, const Value& b) { return a.data_ == b.data_; }

 private:
  Data data_;
  int line_ = 0;
};

/// "a boolean", "a number", "a list", … for messages.
std::string_view Describe(Value::Type type);

}  // namespace fl::spec
