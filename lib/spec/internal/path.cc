#include "spec/internal/path.h"

#include <algorithm>

namespace fl::spec::internal {
namespace {

bool IsIdentifier(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

/// `path` without its last step.
std::string_view Parent(std::string_view path) {
  if (path.ends_with("\"]")) return path.substr(0, path.rfind("[\""));
  const size_t cut = path.find_last_of(".[");
  return cut == std::string_view::npos ? std::string_view() : path.substr(0, cut);
}

}  // namespace

std::string JoinKey(std::string_view path, std::string_view key) {
  if (!IsIdentifier(key)) return std::string(path) + "[" + Value(key).ToJson() + "]";
  return path.empty() ? std::string(key) : std::string(path) + "." + std::string(key);
}

std::string JoinIndex(std::string_view path, size_t index) {
  return std::string(path) + "[" + std::to_string(index) + "]";
}

LineIndex::LineIndex(const Value& root) { Add(root, ""); }

void LineIndex::Add(const Value& value, const std::string& path) {
  lines_.emplace(path, value.line());
  if (const Value::Map* map = value.As<Value::Map>()) {
    for (const auto& [key, member] : *map) Add(member, JoinKey(path, key));
  } else if (const Value::List* list = value.As<Value::List>()) {
    for (size_t i = 0; i < list->size(); ++i) Add((*list)[i], JoinIndex(path, i));
  }
}

int LineIndex::Find(std::string_view path) const {
  for (;;) {
    if (auto found = lines_.find(path); found != lines_.end()) return found->second;
    if (path.empty()) return 0;
    path = Parent(path);
  }
}

}  // namespace fl::spec::internal
