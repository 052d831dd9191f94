#include "registry/internal/stored_json.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace fl::registry::internal {

using nlohmann::json;

namespace {

base::Status AsDataLoss(const base::Status& status) {
  return status.ok() ? status : base::DataLoss(status.message(), status.hint());
}

}  // namespace

base::Result<json> ParseStored(std::string_view text, std::string_view where) {
  base::Result<json> parsed = base::ParseJson(text, where);
  if (parsed.ok()) return parsed;
  return AsDataLoss(parsed.status());
}

StoredFields::StoredFields(const json& object, std::string where)
    : reader_(object, std::move(where)) {}

base::Status StoredFields::status() const { return AsDataLoss(reader_.status()); }

void StoredFields::Fail(std::string_view key, std::string_view problem) {
  reader_.Fail(base::DataLoss("field \"" + std::string(key) + "\": " + std::string(problem)));
}

std::string StoredFields::String(std::string_view key) {
  std::string value;
  reader_.Required(key, &value);
  return value;
}

int64_t StoredFields::Count(std::string_view key) {
  int64_t value = 0;
  reader_.Required(key, &value);
  if (value < 0) Fail(key, "is negative");
  return value;
}

double StoredFields::Double(std::string_view key) {
  const json* child = reader_.Child(key);
  if (child != nullptr && *child == "Infinity") return std::numeric_limits<double>::infinity();
  double value = 0;
  reader_.Required(key, &value);
  return value;
}

base::Digest StoredFields::Digest(std::string_view key) {
  const base::Result<base::Digest> digest = base::Digest::Parse(String(key));
  if (digest.ok()) return *digest;
  Fail(key, digest.status().message());
  return {};
}

base::Time StoredFields::Time(std::string_view key) {
  const base::Result<base::Time> time = base::ParseTime(String(key));
  if (time.ok()) return *time;
  Fail(key, time.status().message());
  return {};
}

const json& StoredFields::Object(std::string_view key) {
  static const json& empty = *new json(json::object());
  const json* child = reader_.Child(key);
  if (child == nullptr) return empty;
  if (child->is_object()) return *child;
  Fail(key, "is not an object");
  return empty;
}

const json& StoredFields::Array(std::string_view key) {
  static const json& empty = *new json(json::array());
  const json* child = reader_.Child(key);
  if (child == nullptr) return empty;
  if (child->is_array()) return *child;
  Fail(key, "is not an array");
  return empty;
}

}  // namespace fl::registry::internal
