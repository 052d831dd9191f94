#pragma once

/// Reading JSON that came from outside: parsing with bounds, and fields with types. Light: the JSON
/// library itself is included only where values are made.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fl::base {

/// Parses one JSON text: nesting up to 64, no duplicate keys, no text after it. kInvalidArgument,
/// with `what` (e.g. "session request") before the message.
Result<nlohmann::json> ParseJson(std::string_view text, std::string_view what);

/// The JSON text of `value` on one line; bytes that are not UTF-8 are replaced.
std::string DumpJson(const nlohmann::json& value);
std::string DumpJson(const nlohmann::ordered_json& value);

/// Takes the fields of one JSON object. The first problem is kept and makes all later reads do
/// nothing, so that a struct is read in one sweep and `status()` asked once at the end. Fields that
/// nobody asks for are left alone: a newer peer may send more. The object outlives the reader.
class JsonReader {
 public:
  /// `where` names the object in messages, e.g. "task".
  JsonReader(const nlohmann::json& object, std::string where);

  void Required(std::string_view key, std::string* out);
  void Required(std::string_view key, int64_t* out);
  void Required(std::string_view key, uint64_t* out);
  void Required(std::string_view key, double* out);
  void Required(std::string_view key, bool* out);
  void Required(std::string_view key, std::vector<std::string>* out);
  void Required(std::string_view key, std::map<std::string, double>* out);
  void Required(std::string_view key, std::map<std::string, std::string>* out);

  /// As Required where the key is present and not null; else `out` keeps its value.
  template <typename T>
  void Optional(std::string_view key, T* out) {
    if (Has(key)) Required(key, out);
  }
  template <typename T>
  void Optional(std::string_view key, std::optional<T>* out) {
    if (!Has(key)) return;
    T value{};
    Required(key, &value);
    if (status_.ok()) *out = std::move(value);
  }

  bool Has(std::string_view key) const;
  /// The value at `key`, or null (and a problem) where it is missing.
  const nlohmann::json* Child(std::string_view key);
  /// Records a problem found by the caller.
  void Fail(const Status& status);

  const Status& status() const { return status_; }

 private:
  const nlohmann::json* Find(std::string_view key, std::string_view wanted,
                             bool (*is)(const nlohmann::json&));

  const nlohmann::json& object_;
  std::string where_;
  Status status_;
};

}  // namespace fl::base
