#include "spec/internal/yaml_reader.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "spec/internal/tree_builder.h"
#include "spec/internal/yaml_chunks.h"
#include "spec/internal/yaml_scalar.h"
#include "spec/parse.h"

namespace fl::spec::internal {
namespace {

constexpr std::string_view kTabAdvice = "a tab stands in the indentation: indent with spaces";

/// Builds the tree of one document. Throws YAML::ParserException where a limit is passed, which is
/// how the parser is stopped.
class Handler : public YAML::EventHandler {
 public:
  Handler(const YamlChunk& chunk, TreeBuilder& tree) : chunk_(chunk), tree_(tree) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) throw YAML::ParserException(mark, "there is text after the end of the document");
    started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // Two things that yaml-cpp takes for a null and YAML does not: a line without a colon, which is
    // reported where its key stands, and nothing between two commas.
    const bool flow = !open_.empty() && open_.back().flow;
    if (!flow && anchor == 0 && !tree_.AwaitsKey() && mark.pos == key_position_) {
      throw YAML::ParserException(mark, "there is no ':' behind the key");
    }
    if (flow && open_.back().list && CharacterAt(mark) == ',') {
      throw YAML::ParserException(mark, "there is nothing between two commas");
    }
    Scalar(mark, anchor, Value(), "");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    CheckIndentation(mark);
    const bool plain = tag == "?" || tag.empty();
    last_scalar_ = mark;
    if (tree_.AwaitsKey() && text == "<<") {
      if (plain) {
        tree_.MergeKey(Line(mark));
      } else {
        tree_.Key("<<", Line(mark));
        tree_.Report(Line(mark), "a quoted << is no merge key: take the quotes off");
      }
      return;
    }
    if (plain) {
      Scalar(mark, anchor, ResolvePlain(text), text);
      return;
    }
    base::Result<Value> value = ResolveTagged(tag, text);
    if (!value.ok()) {
      tree_.Report(Line(mark), value.status().message() + ": " +
                                   (value.status().hint().empty() ? "correct the value or the tag"
                                                                  : value.status().hint()));
      value = Value(text);
    }
    Scalar(mark, anchor, *std::move(value), text);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    CheckIndentation(mark);
    auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      throw YAML::ParserException(mark, "an alias refers to what it stands in");
    }
    Charge(mark, found->second);
    if (tree_.AwaitsKey()) {
      Scalar(mark, 0, Value(found->second), "");
    } else {
      Check(mark, tree_.Add(found->second, Line(mark)));
    }
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    Start(mark, tag, "tag:yaml.org,2002:seq", anchor, style, true);
    Check(mark, tree_.BeginList(Line(mark)));
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    Start(mark, tag, "tag:yaml.org,2002:map", anchor, style, false);
    Check(mark, tree_.BeginMap(Line(mark)));
  }
  /// Where the last scalar begins, if it is quoted and the quote is not closed: yaml-cpp takes the
  /// end of the text for the closing quote.
  std::optional<YAML::Mark> OpenQuote() const {
    if (last_scalar_.is_null()) return std::nullopt;
    const std::string_view rest = chunk_.text.substr(static_cast<size_t>(last_scalar_.pos));
    const size_t at = AfterProperties(rest);
    if (at >= rest.size() || (rest[at] != '"' && rest[at] != '\'')) return std::nullopt;
    const char quote = rest[at];
    for (size_t i = at + 1; i < rest.size(); ++i) {
      if (rest[i] == '\\' && quote == '"') {
        ++i;
      } else if (rest[i] == quote && quote == '\'' && i + 1 < rest.size() && rest[i + 1] == quote) {
        ++i;
      } else if (rest[i] == quote) {
        return std::nullopt;
      }
    }
    return last_scalar_;
  }

  void OnSequenceEnd() override { End(); }
  void OnMapEnd() override { End(); }

 private:
  struct Open {
    YAML::Mark mark;
    YAML::anchor_t anchor;
    bool flow;
    bool list;
  };

  char CharacterAt(const YAML::Mark& mark) const {
    const auto at = static_cast<size_t>(mark.pos);
    return at < chunk_.text.size() ? chunk_.text[at] : '\n';
  }

  /// The length of the anchors and tags that `text` begins with, and the white space behind them.
  static size_t AfterProperties(std::string_view text) {
    constexpr std::string_view kWhite = " \t\n";
    size_t at = 0;
    while (at < text.size() && (text[at] == '&' || text[at] == '!')) {
      at = std::min(text.find_first_of(kWhite, at), text.size());
      at = std::min(text.find_first_not_of(kWhite, at), text.size());
    }
    return at;
  }

  int Line(const YAML::Mark& mark) const { return chunk_.first_line + mark.line; }

  void Check(const YAML::Mark& mark, bool within_limits) {
    if (!within_limits) throw YAML::ParserException(mark, tree_.stop().message);
  }

  /// In block style a tab may not indent, but yaml-cpp lets some through.
  void CheckIndentation(const YAML::Mark& mark) {
    if (!open_.empty() && open_.back().flow) return;
    if (chunk_.TabInIndentation(mark.line, mark.column)) {
      throw YAML::ParserException(mark, std::string(kTabAdvice));
    }
  }

  void Scalar(const YAML::Mark& mark, YAML::anchor_t anchor, Value value, const std::string& text) {
    if (tree_.AwaitsKey()) {
      Key(mark, value, text);
    } else {
      const double* number = value.As<double>();
      if (number != nullptr && !std::isfinite(*number)) {
        tree_.Report(Line(mark), "must be a finite number, not " + text);
        value = Value(0.0);
      }
      if (anchor != 0) Remember(mark, anchor, value);
      Check(mark, tree_.Add(std::move(value), Line(mark)));
      return;
    }
    if (anchor != 0) Remember(mark, anchor, value);
  }

  /// Only strings, and whole numbers that read back as they were written, can be keys of JSON
  /// without a surprise: kubectl makes "true" of a key `yes`.
  void Key(const YAML::Mark& mark, const Value& value, const std::string& text) {
    key_position_ = mark.pos;
    if (const std::string* key = value.As<std::string>()) {
      tree_.Key(*key, Line(mark));
      return;
    }
    tree_.Key(text, Line(mark));
    const int64_t* number = value.As<int64_t>();
    if (number != nullptr && std::to_string(*number) == text) return;
    tree_.Report(Line(mark), "the key is read as " + std::string(Describe(value.type())) +
                                 ": put it in quotes");
  }

  void Start(const YAML::Mark& mark, const std::string& tag, std::string_view expected,
             YAML::anchor_t anchor, YAML::EmitterStyle::value style, bool list) {
    CheckIndentation(mark);
    if (tree_.AwaitsKey()) throw YAML::ParserException(mark, "a key must be a string");
    if (!tag.empty() && tag != "?" && tag != "!" && tag != expected) {
      tree_.Report(Line(mark), "the tag " + tag + " is not known: leave it out");
    }
    open_.push_back({mark, anchor, style == YAML::EmitterStyle::Flow, list});
  }

  void End() {
    const Open open = open_.back();
    open_.pop_back();
    const Value* value = tree_.End();
    if (open.anchor != 0 && value != nullptr) Remember(open.mark, open.anchor, *value);
  }

  void Remember(const YAML::Mark& mark, YAML::anchor_t anchor, const Value& value) {
    Charge(mark, value);
    anchors_[anchor] = value;
  }

  /// Copies of anchored values are bounded, so that nested aliases cannot grow without end.
  void Charge(const YAML::Mark& mark, const Value& value) {
    const TreeSize size = SizeOf(value);
    copied_.values += size.values;
    copied_.bytes += size.bytes;
    if (copied_.values > kMaxAliasValues || copied_.bytes > kMaxAliasBytes) {
      throw YAML::ParserException(mark, "the aliases add up to more than " +
                                            std::to_string(kMaxAliasValues) + " values or " +
                                            std::to_string(kMaxAliasBytes) + " bytes");
    }
  }

  const YamlChunk& chunk_;
  TreeBuilder& tree_;
  bool started_ = false;
  int key_position_ = -1;
  YAML::Mark last_scalar_ = YAML::Mark::null_mark();
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Value> anchors_;
  TreeSize copied_;
};

/// yaml-cpp's messages name its own states; these name what to look for.
std::string Explain(const std::string& message) {
  struct Row {
    std::string_view theirs;
    std::string_view ours;
  };
  static constexpr Row kRows[] = {
      {"illegal map value",
       "a ':' stands where no key can be: put the value in quotes, or correct "
       "the indentation"},
      {"illegal map key", "a '?' cannot stand here: put the value in quotes"},
      {"illegal block entry", "a list item cannot stand here: begin the list on a line of its own"},
      {"illegal flow end", "a closing bracket has no opening one: put the value in quotes"},
      {"illegal EOF in scalar", "a quote is opened and not closed"},
      {"end of map not found",
       "this does not belong to the map around it: correct the indentation, "
       "or put the value in quotes"},
      {"end of sequence not found",
       "this does not belong to the list around it: correct the "
       "indentation"},
      {"end of map flow not found", "a '{' is not closed"},
      {"end of sequence flow not found", "a '[' is not closed"},
      {"unknown token", "a value cannot begin with this character: put it in quotes"},
  };
  for (const Row& row : kRows) {
    if (row.theirs == message) return std::string(row.ours);
  }
  return message;
}

Tree ReadChunk(const YamlChunk& chunk) {
  if (chunk.LooksLikeJson()) {
    Tree tree = ReadJson(chunk.text, chunk.first_line);
    if (tree.complete) return tree;  // else the YAML parser has the say
  }
  Tree result;
  if (!chunk.problems.empty()) {
    result.problems = chunk.problems;
    result.complete = false;
    return result;
  }
  TreeBuilder builder;
  Handler handler(chunk, builder);
  try {
    std::istringstream stream{std::string(chunk.text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(handler)) {
    }
    if (const std::optional<YAML::Mark> quote = handler.OpenQuote()) {
      throw YAML::ParserException(*quote, "illegal EOF in scalar");
    }
  } catch (const YAML::Exception& error) {
    result.complete = false;
    const int line = error.mark.is_null() ? 0 : error.mark.line;
    std::string message = Explain(error.msg);
    if (chunk.TabInIndentation(line, error.mark.is_null() ? 0 : error.mark.column)) {
      message = kTabAdvice;
    }
    builder.problems().push_back({"", chunk.first_line + line, "", std::move(message)});
  }
  result.problems = std::move(builder.problems());
  result.root = builder.TakeRoot();
  return result;
}

}  // namespace

std::vector<Tree> ReadYaml(std::string_view text) {
  std::vector<Tree> trees;
  std::string normal;
  if (Problems problems = NormalizeText(text, normal); !problems.empty()) {
    trees.push_back({Value(), std::move(problems), false});
    return trees;
  }
  for (const YamlChunk& chunk : SplitDocuments(normal)) {
    Tree tree = ReadChunk(chunk);
    if (!tree.root.is_null() || !tree.problems.empty()) trees.push_back(std::move(tree));
  }
  return trees;
}

}  // namespace fl::spec::internal
