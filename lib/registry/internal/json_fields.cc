#include "registry/internal/json_fields.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace fl::registry::internal {

using nlohmann::json;

base::Result<json> ParseJson(std::string_view text, std::string_view where) {
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return base::DataLoss(std::string(where) + " is not JSON");
  return value;
}

std::string DumpJson(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

JsonFields::JsonFields(const json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) status_ = base::DataLoss(where_ + " is not a JSON object");
}

bool JsonFields::Has(std::string_view key) const {
  return object_.is_object() && object_.contains(key);
}

const json* JsonFields::Find(std::string_view key) {
  if (!status_.ok()) return nullptr;
  const auto found = object_.find(key);
  if (found != object_.end()) return &*found;
  Fail(key, "is missing");
  return nullptr;
}

void JsonFields::Fail(std::string_view key, std::string_view problem) {
  if (!status_.ok()) return;
  status_ = base::DataLoss(where_ + ": \"" + std::string(key) + "\" " + std::string(problem));
}

std::string JsonFields::String(std::string_view key) {
  const json* value = Find(key);
  if (value == nullptr) return "";
  if (const auto* text = value->get_ptr<const std::string*>()) return *text;
  Fail(key, "is not a string");
  return "";
}

std::string JsonFields::StringOr(std::string_view key, std::string fallback) {
  return Has(key) ? String(key) : std::move(fallback);
}

int64_t JsonFields::Count(std::string_view key) {
  const json* value = Find(key);
  if (value == nullptr) return 0;
  if (const auto* number = value->get_ptr<const uint64_t*>();
      number != nullptr && *number <= uint64_t{std::numeric_limits<int64_t>::max()}) {
    return static_cast<int64_t>(*number);
  }
  // A value built in this process, rather than parsed, may hold a signed number.
  if (value->is_number_integer() && !value->is_number_unsigned()) {
    if (const auto number = value->get<int64_t>(); number >= 0) return number;
  }
  Fail(key, "is not a whole number from 0");
  return 0;
}

double JsonFields::Double(std::string_view key) {
  const json* value = Find(key);
  if (value == nullptr) return 0;
  if (value->is_number()) return value->get<double>();
  if (*value == "Infinity") return std::numeric_limits<double>::infinity();
  if (*value == "-Infinity") return -std::numeric_limits<double>::infinity();
  Fail(key, "is not a number");
  return 0;
}

base::Digest JsonFields::Digest(std::string_view key) {
  const std::string text = String(key);
  if (!status_.ok()) return {};
  const base::Result<base::Digest> digest = base::Digest::Parse(text);
  if (digest.ok()) return *digest;
  Fail(key, digest.status().message());
  return {};
}

base::Time JsonFields::Time(std::string_view key) {
  const std::string text = String(key);
  if (!status_.ok()) return {};
  const base::Result<base::Time> time = base::ParseTime(text);
  if (time.ok()) return *time;
  Fail(key, time.status().message());
  return {};
}

const json& JsonFields::Object(std::string_view key) {
  static const json& empty = *new json(json::object());
  const json* value = Find(key);
  if (value == nullptr) return empty;
  if (value->is_object()) return *value;
  Fail(key, "is not an object");
  return empty;
}

const json& JsonFields::Array(std::string_view key) {
  static const json& empty = *new json(json::array());
  const json* value = Find(key);
  if (value == nullptr) return empty;
  if (value->is_array()) return *value;
  Fail(key, "is not an array");
  return empty;
}

}  // namespace fl::registry::internal
