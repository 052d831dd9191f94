#include "agent/internal/map_reader.h"

#include <filesystem>
#include <utility>

namespace fl::agent::internal {

using spec::Value;

MapReader::MapReader(const Value& value, std::string path, std::string source, base::Path folder,
                     spec::Problems* problems)
    : value_(value),
      path_(std::move(path)),
      source_(std::move(source)),
      folder_(std::move(folder)),
      problems_(problems) {
  if (!value_.is_map() && !value_.is_null()) {
    Fail("", "must be a map, is " + std::string(spec::Describe(value_.type())));
  }
}

std::string MapReader::PathOf(std::string_view key) const {
  if (path_.empty() || key.empty()) return path_ + std::string(key);
  return path_ + "." + std::string(key);
}

void MapReader::Fail(std::string_view key, std::string message) {
  const Value* const field = key.empty() ? nullptr : value_.Find(key);
  problems_->push_back({.source = source_,
                        .line = field != nullptr ? field->line() : value_.line(),
                        .path = PathOf(key),
                        .message = std::move(message)});
}

bool MapReader::Has(std::string_view key) const {
  const Value* const value = value_.Find(key);
  return value != nullptr && !value->is_null();
}

const Value* MapReader::Find(std::string_view key) {
  asked_.emplace(key);
  return Has(key) ? value_.Find(key) : nullptr;
}

void MapReader::WrongType(std::string_view key, const Value& value, std::string_view wanted) {
  Fail(key, "must be " + std::string(wanted) + ", is " + std::string(spec::Describe(value.type())));
}

void MapReader::Text(std::string_view key, std::string* out) {
  const Value* const value = Find(key);
  if (value == nullptr) return;
  const auto* const text = value->As<std::string>();
  if (text == nullptr) return WrongType(key, *value, "a string (put it in quotes)");
  if (text->empty()) return Fail(key, "is empty: give a value, or leave the field out");
  *out = *text;
}

void MapReader::File(std::string_view key, base::Path* out) {
  std::string text;
  Text(key, &text);
  if (!text.empty()) *out = std::filesystem::absolute(folder_ / text).lexically_normal();
}

void MapReader::Bool(std::string_view key, bool* out) {
  const Value* const value = Find(key);
  if (value == nullptr) return;
  const auto* const flag = value->As<bool>();
  if (flag == nullptr) return WrongType(key, *value, "true or false");
  *out = *flag;
}

void MapReader::Integer(std::string_view key, int64_t low, int64_t high, int64_t* out) {
  const Value* const value = Find(key);
  if (value == nullptr) return;
  const auto* const number = value->As<int64_t>();
  if (number == nullptr) return WrongType(key, *value, "a whole number");
  if (*number < low || *number > high) {
    return Fail(key, "is " + std::to_string(*number) + ", must be from " + std::to_string(low) +
                         " to " + std::to_string(high));
  }
  *out = *number;
}

void MapReader::Positive(std::string_view key, double high, double* out) {
  const Value* const value = Find(key);
  if (value == nullptr) return;
  double number = 0;
  if (const auto* const whole = value->As<int64_t>()) {
    number = static_cast<double>(*whole);
  } else if (const auto* const fraction = value->As<double>()) {
    number = *fraction;
  } else {
    return WrongType(key, *value, "a number");
  }
  if (!(number > 0 && number <= high)) {  // also not for .nan
    return Fail(key,
                "must be greater than 0 and at most " + std::to_string(static_cast<int64_t>(high)));
  }
  *out = number;
}

void MapReader::TextList(std::string_view key, std::vector<std::string>* out) {
  const Value* const value = Find(key);
  if (value == nullptr) return;
  const auto* const list = value->As<Value::List>();
  if (list == nullptr) return WrongType(key, *value, "a list of strings");
  std::vector<std::string> texts;
  for (const Value& item : *list) {
    const auto* const text = item.As<std::string>();
    if (text == nullptr) return WrongType(key, item, "a list of strings (quote numbers)");
    texts.push_back(*text);
  }
  *out = std::move(texts);
}

void MapReader::TextMap(std::string_view key, std::map<std::string, std::string>* out) {
  const Value* const value = Find(key);
  if (value == nullptr) return;
  const auto* const map = value->As<Value::Map>();
  if (map == nullptr) return WrongType(key, *value, "a map of strings");
  std::map<std::string, std::string> texts;
  for (const auto& [name, item] : *map) {
    const auto* const text = item.As<std::string>();
    if (text == nullptr) return WrongType(key, item, "a map of strings (quote numbers)");
    texts[name] = *text;
  }
  *out = std::move(texts);
}

void MapReader::ReadChild(const Value& child, std::string path,
                          const std::function<void(MapReader&)>& read) {
  MapReader reader(child, std::move(path), source_, folder_, problems_);
  read(reader);
  reader.Finish();
}

void MapReader::Map(std::string_view key, const std::function<void(MapReader&)>& read) {
  const Value* const value = Find(key);
  if (value != nullptr) ReadChild(*value, PathOf(key), read);
}

void MapReader::MapList(std::string_view key, const std::function<void(MapReader&)>& read) {
  const Value* const value = Find(key);
  if (value == nullptr) return;
  const auto* const list = value->As<Value::List>();
  if (list == nullptr) return WrongType(key, *value, "a list");
  for (size_t i = 0; i < list->size(); ++i) {
    ReadChild((*list)[i], PathOf(key) + "[" + std::to_string(i) + "]", read);
  }
}

void MapReader::EachMap(const std::function<void(const std::string&, MapReader&)>& read) {
  const auto* const map = value_.As<Value::Map>();
  if (map == nullptr) return;
  for (const auto& [name, child] : *map) {
    asked_.insert(name);
    ReadChild(child, PathOf(name),
              [&, &known_name = name](MapReader& reader) { read(known_name, reader); });
  }
}

void MapReader::Finish() {
  const auto* const map = value_.As<Value::Map>();
  if (map == nullptr) return;
  for (const auto& [name, child] : *map) {
    if (asked_.contains(name)) continue;
    std::string known;
    for (const std::string& key : asked_) known += (known.empty() ? "" : ", ") + key;
    Fail(name, "unknown field; known here: " + known);
  }
}

}  // namespace fl::agent::internal
