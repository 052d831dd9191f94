#include "spec/parse.h"

#include <algorithm>
#include <map>

#include "spec/internal/object_reader.h"
#include "spec/internal/path.h"
#include "spec/internal/yaml_reader.h"

namespace fl::spec {
namespace {

class Reader {
 public:
  explicit Reader(AgentKeys keys) : keys_(keys) {}

  void ReadText(const NamedText& text) {
    const size_t first = result_.problems.size();
    for (const internal::Tree& tree : internal::ReadYaml(text.text)) {
      const size_t before = result_.problems.size();
      result_.problems.insert(result_.problems.end(), tree.problems.begin(), tree.problems.end());
      if (!tree.complete) continue;
      // A document with a duplicate key has no one meaning; its other problems are still of use.
      const bool usable = result_.problems.size() == before;
      const size_t read = result_.problems.size();
      ReadDocument(tree.root, text.source, usable);
      DropRepeated(tree.problems, read);
    }
    for (size_t i = first; i < result_.problems.size(); ++i) {
      result_.problems[i].source = text.source;
    }
    std::stable_sort(result_.problems.begin() + static_cast<std::ptrdiff_t>(first),
                     result_.problems.end(),
                     [](const Problem& a, const Problem& b) { return a.line < b.line; });
  }

  ParseResult Take() { return std::move(result_); }

 private:
  /// What the document's text has wrong at a path makes what its value has wrong there void.
  void DropRepeated(const Problems& earlier, size_t from) {
    const auto repeats = [&earlier](const Problem& problem) {
      return std::any_of(earlier.begin(), earlier.end(),
                         [&](const Problem& each) { return each.path == problem.path; });
    };
    Problems& all = result_.problems;
    all.erase(std::remove_if(all.begin() + static_cast<std::ptrdiff_t>(from), all.end(), repeats),
              all.end());
  }

  void ReadDocument(const Value& root, std::string_view source, bool usable) {
    const Value* kind = root.Find("kind");
    const Value* version = root.Find("apiVersion");
    const bool is_list =
        kind != nullptr && *kind == Value("List") && version != nullptr && *version == Value("v1");
    if (!is_list) {
      Add(root, "", source, usable);
      return;
    }
    const Value* items = root.Find("items");
    const Value::List* list = items == nullptr ? nullptr : items->As<Value::List>();
    if (list == nullptr) {
      result_.problems.push_back({"", root.line(), "items", "must be a list of objects"});
      return;
    }
    for (size_t i = 0; i < list->size(); ++i) {
      Add((*list)[i], internal::JoinIndex("items", i), source, usable);
    }
  }

  void Add(const Value& tree, const std::string& path, std::string_view source, bool usable) {
    std::optional<Object> object = internal::ReadObject(tree, path, result_.problems, keys_);
    if (!object || !usable) return;
    const ObjectMeta& metadata = MetadataOf(*object);
    const std::string key = std::string(KindOf(*object)) + " " +
                            metadata.namespace_name.value_or("") + "/" + metadata.name;
    const std::string place = std::string(source) + ":" + std::to_string(tree.line());
    auto [earlier, is_new] = seen_.emplace(key, place);
    if (!is_new) {
      result_.problems.push_back(
          {"", tree.line(), path.empty() ? "metadata.name" : path + ".metadata.name",
           "there is already a " + std::string(KindOf(*object)) + " \"" + metadata.name + "\" at " +
               earlier->second + ": give one of them another name"});
      return;
    }
    result_.documents.push_back({*std::move(object), std::string(source), tree.line()});
  }

  const AgentKeys keys_;
  ParseResult result_;
  std::map<std::string, std::string> seen_;
};

}  // namespace

ParseResult ParseYaml(std::string_view text, std::string_view source) {
  return ParseYaml({NamedText{source, text}});
}

ParseResult ParseYaml(const std::vector<NamedText>& texts, AgentKeys keys) {
  Reader reader(keys);
  for (const NamedText& text : texts) reader.ReadText(text);
  return reader.Take();
}

}  // namespace fl::spec
