#include "base/json.h"

#include <nlohmann/json.hpp>
#include <set>

namespace fl::base {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 64;

/// Builds the value; stops at the first duplicate key or at too deep nesting.
class Guard {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) problem = "is nested deeper than " + std::to_string(kMaxDepth);
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) problem = "has the key \"" + key + "\" twice";
    }
    if (!problem.empty()) throw std::invalid_argument(problem);
    return true;
  }
  std::string problem;

 private:
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

Result<json> ParseJson(std::string_view text, std::string_view what) {
  try {
    return json::parse(
        text, [guard = Guard()](int depth, json::parse_event_t event, json& parsed) mutable {
          return guard(depth, event, parsed);
        });
  } catch (const std::exception& error) {
    return InvalidArgument(std::string(what) + ": not valid JSON: " + error.what());
  }
}

std::string DumpJson(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}
std::string DumpJson(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

JsonReader::JsonReader(const json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) Fail(InvalidArgument("must be a JSON object"));
}

void JsonReader::Fail(const Status& status) {
  if (status_.ok()) status_ = status.WithContext(where_);
}

bool JsonReader::Has(std::string_view key) const {
  if (!object_.is_object()) return false;
  const auto found = object_.find(std::string(key));
  return found != object_.end() && !found->is_null();
}

const json* JsonReader::Child(std::string_view key) {
  return Find(key, "present", [](const json&) { return true; });
}

const json* JsonReader::Find(std::string_view key, std::string_view wanted,
                             bool (*is)(const json&)) {
  if (!status_.ok()) return nullptr;
  const auto found = object_.find(std::string(key));
  if (found == object_.end() || found->is_null()) {
    Fail(InvalidArgument("field \"" + std::string(key) + "\" is missing"));
    return nullptr;
  }
  if (!is(*found)) {
    Fail(InvalidArgument("field \"" + std::string(key) + "\" must be " + std::string(wanted) +
                         ", not " + DumpJson(*found).substr(0, 80)));
    return nullptr;
  }
  return &*found;
}

void JsonReader::Required(std::string_view key, std::string* out) {
  const json* value = Find(key, "a string", [](const json& v) { return v.is_string(); });
  if (value != nullptr) *out = value->get<std::string>();
}

void JsonReader::Required(std::string_view key, int64_t* out) {
  const json* value = Find(key, "a whole number that fits 64 bits", [](const json& v) {
    return v.is_number_integer() &&
           (!v.is_number_unsigned() || v.get<uint64_t>() <= uint64_t{INT64_MAX});
  });
  if (value != nullptr) *out = value->get<int64_t>();
}

void JsonReader::Required(std::string_view key, uint64_t* out) {
  const json* value = Find(key, "a whole number of at least 0",
                           [](const json& v) { return v.is_number_unsigned(); });
  if (value != nullptr) *out = value->get<uint64_t>();
}

void JsonReader::Required(std::string_view key, double* out) {
  const json* value = Find(key, "a number", [](const json& v) { return v.is_number(); });
  if (value != nullptr) *out = value->get<double>();
}

void JsonReader::Required(std::string_view key, bool* out) {
  const json* value = Find(key, "true or false", [](const json& v) { return v.is_boolean(); });
  if (value != nullptr) *out = value->get<bool>();
}

void JsonReader::Required(std::string_view key, std::vector<std::string>* out) {
  const json* value = Find(key, "a list of strings", [](const json& v) {
    return v.is_array() &&
           std::all_of(v.begin(), v.end(), [](const json& e) { return e.is_string(); });
  });
  if (value != nullptr) *out = value->get<std::vector<std::string>>();
}

void JsonReader::Required(std::string_view key, std::map<std::string, double>* out) {
  const json* value = Find(key, "an object of numbers", [](const json& v) {
    return v.is_object() &&
           std::all_of(v.begin(), v.end(), [](const json& e) { return e.is_number(); });
  });
  if (value != nullptr) *out = value->get<std::map<std::string, double>>();
}

void JsonReader::Required(std::string_view key, std::map<std::string, std::string>* out) {
  const json* value = Find(key, "an object of strings", [](const json& v) {
    return v.is_object() &&
           std::all_of(v.begin(), v.end(), [](const json& e) { return e.is_string(); });
  });
  if (value != nullptr) *out = value->get<std::map<std::string, std::string>>();
}

}  // namespace fl::base
