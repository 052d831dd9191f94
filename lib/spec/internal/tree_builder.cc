#include "spec/internal/tree_builder.h"

#include "spec/internal/path.h"
#include "spec/parse.h"

namespace fl::spec::internal {

bool TreeBuilder::AwaitsKey() const {
  return !open_.empty() && open_.back().value.is_map() && !open_.back().has_key;
}

std::string TreeBuilder::Path() const {
  std::string path;
  for (const Open& open : open_) {
    if (const Value::List* list = open.value.As<Value::List>()) {
      path = JoinIndex(path, list->size());
    } else if (open.has_key) {
      path = JoinKey(path, open.key);
    }
  }
  return path;
}

void TreeBuilder::Report(int line, std::string message) {
  problems_.push_back({"", line, Path(), std::move(message)});
}

void TreeBuilder::Key(std::string key, int line) {
  Open& map = open_.back();
  map.has_key = true;
  map.key_is_merge = false;
  map.key = std::move(key);
  map.key_line = line;
  const Value* earlier = map.value.Find(map.key);
  map.key_is_duplicate = earlier != nullptr;
  if (earlier != nullptr) {
    Report(line, "the key stands twice, first on line " + std::to_string(earlier->line()) +
                     ": remove one of the two");
  }
}

void TreeBuilder::MergeKey(int line) {
  Open& map = open_.back();
  map.has_key = true;
  map.key_is_merge = true;
  map.key_is_duplicate = map.merge_seen;
  map.key = "<<";
  map.key_line = line;
  if (map.merge_seen) {
    Report(line, "the key stands twice: merge several maps as `<<: [*a, *b]`");
  }
  map.merge_seen = true;
}

bool TreeBuilder::CountOne(int line) {
  if (++values_ <= kMaxValues) return true;
  stop_ = {"", line, "", "there are more than " + std::to_string(kMaxValues) + " values"};
  return false;
}

bool TreeBuilder::Add(Value value, int line) {
  if (!CountOne(line)) return false;
  Attach(std::move(value), line);
  return true;
}

bool TreeBuilder::BeginList(int line) {
  if (!CountOne(line)) return false;
  if (open_.size() >= static_cast<size_t>(kMaxDepth)) {
    stop_ = {"", line, "",
             "lists and maps are nested more than " + std::to_string(kMaxDepth) + " deep"};
    return false;
  }
  Open open;
  open.value = Value(Value::List());
  open.value.set_line(line);
  open_.push_back(std::move(open));
  return true;
}

bool TreeBuilder::BeginMap(int line) {
  if (!BeginList(line)) return false;
  open_.back().value = Value(Value::Map());
  open_.back().value.set_line(line);
  return true;
}

const Value* TreeBuilder::End() {
  Open open = std::move(open_.back());
  open_.pop_back();
  ApplyMerges(open);
  const int line = open.value.line();
  return Attach(std::move(open.value), line);
}

const Value* TreeBuilder::Attach(Value value, int line) {
  value.set_line(line);
  if (open_.empty()) {
    root_ = std::move(value);
    return &root_;
  }
  Open& parent = open_.back();
  if (Value::List* list = parent.value.As<Value::List>()) {
    return &list->emplace_back(std::move(value));
  }
  parent.has_key = false;
  if (parent.key_is_duplicate) return nullptr;
  if (parent.key_is_merge) return &parent.merges.emplace_back(std::move(value));
  value.set_line(parent.key_line);
  Value& member = (*parent.value.As<Value::Map>())[parent.key];
  member = std::move(value);
  return &member;
}

/// The map's own keys win, then those of the earlier map.
void TreeBuilder::ApplyMerges(Open& map) {
  const auto merge = [&](const Value& source) {
    const Value::Map* members = source.As<Value::Map>();
    if (members == nullptr) {
      Report(map.key_line,
             "`<<` takes a map or a list of maps, not " + std::string(Describe(source.type())));
      return;
    }
    map.value.As<Value::Map>()->insert(members->begin(), members->end());
  };
  for (const Value& source : map.merges) {
    if (const Value::List* list = source.As<Value::List>()) {
      for (const Value& item : *list) merge(item);
    } else {
      merge(source);
    }
  }
}

TreeSize SizeOf(const Value& value) {
  TreeSize size{1, 0};
  const auto add = [&size](const Value& member) {
    const TreeSize part = SizeOf(member);
    size.values += part.values;
    size.bytes += part.bytes;
  };
  if (const std::string* text = value.As<std::string>()) {
    size.bytes += text->size();
  } else if (const Value::List* list = value.As<Value::List>()) {
    for (const Value& item : *list) add(item);
  } else if (const Value::Map* map = value.As<Value::Map>()) {
    for (const auto& [key, member] : *map) {
      size.bytes += key.size();
      add(member);
    }
  }
  return size;
}

}  // namespace fl::spec::internal
