#include "cli/json_path.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <variant>
#include <vector>

namespace fl::cli {
namespace {

using spec::Value;

struct Filter;

struct Field {
  std::string name;
};
struct Wildcard {};
/// `[begin:end:step]`; `[n]` is a slice of one that must exist.
struct Slice {
  std::optional<int64_t> begin;
  std::optional<int64_t> end;
  int64_t step = 1;
  bool single = false;
};
struct Union {
  std::vector<std::variant<Field, Slice>> members;
};
/// `..`: this value and all below it.
struct Descend {};
using Step = std::variant<Field, Wildcard, Slice, Union, Descend, std::shared_ptr<const Filter>>;

struct Path {
  bool from_root = false;
  std::vector<Step> steps;
};

enum class Comparison { kExists, kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
struct Filter {
  Path left;
  Comparison comparison = Comparison::kExists;
  std::variant<Path, Value> right;
};

struct Node;
struct Range {
  Path path;
  std::vector<Node> body;
};
struct Node {
  std::variant<std::string, Path, Range> content;
};

constexpr int kMaxNesting = 32;

/// Reads a template from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  base::Result<std::vector<Node>> Nodes(bool in_range, int depth) {
    if (depth > kMaxNesting) return Wrong("nested too deeply");
    std::vector<Node> nodes;
    while (at_ < text_.size()) {
      const size_t brace = text_.find('{', at_);
      if (brace != at_) {
        const size_t end = std::min(brace, text_.size());
        nodes.push_back({std::string(text_.substr(at_, end - at_))});
        at_ = end;
        continue;
      }
      ++at_;
      SkipBlanks();
      if (Word("end")) {
        if (!in_range) return Wrong("{end} without {range}");
        FL_RETURN_IF_ERROR(Expect('}'));
        return nodes;
      }
      if (Word("range")) {
        Range range;
        FL_ASSIGN_OR_RETURN(range.path, ReadPath());
        FL_RETURN_IF_ERROR(Expect('}'));
        FL_ASSIGN_OR_RETURN(range.body, Nodes(true, depth + 1));
        nodes.push_back({std::move(range)});
        continue;
      }
      while (!Take('}')) {
        if (at_ >= text_.size()) return Wrong("a '}' is missing");
        if (text_[at_] == '"' || text_[at_] == '\'') {
          FL_ASSIGN_OR_RETURN(std::string literal, Quoted());
          nodes.push_back({std::move(literal)});
        } else {
          FL_ASSIGN_OR_RETURN(Path path, ReadPath());
          nodes.push_back({std::move(path)});
        }
        SkipBlanks();
      }
    }
    if (in_range) return Wrong("{range} without {end}");
    return nodes;
  }

 private:
  base::Status Wrong(const std::string& what) const {
    return base::InvalidArgument(
        "JSON path: " + what + " at character " + std::to_string(at_ + 1) + " of '" +
            std::string(text_) + "'",
        "write e.g. '{.spec.rounds}' or '{range .items[*]}{.metadata.name}{\"\\n\"}{end}'");
  }

  void SkipBlanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool Take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  base::Status Expect(char c) {
    SkipBlanks();
    if (Take(c)) return base::OkStatus();
    return Wrong(std::string("expected '") + c + "'");
  }
  /// A keyword, followed by a blank or a brace.
  bool Word(std::string_view word) {
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(word)) return false;
    if (rest.size() > word.size() && rest[word.size()] != ' ' && rest[word.size()] != '}') {
      return false;
    }
    at_ += word.size();
    SkipBlanks();
    return true;
  }

  static bool IsNameCharacter(char c) {
    return std::string_view(" \t.[]{}()'\"@$,:=!<>?*|&~").find(c) == std::string_view::npos;
  }
  std::string Name() {
    std::string name;
    while (at_ < text_.size()) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size())
        ++at_;  // kubectl: \. is a dot in a name
      else if (!IsNameCharacter(text_[at_]))
        break;
      name += text_[at_++];
    }
    return name;
  }

  base::Result<std::string> Quoted() {
    const char quote = text_[at_++];
    std::string value;
    while (at_ < text_.size() && text_[at_] != quote) {
      char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        if (c == 'n') c = '\n';
        if (c == 't') c = '\t';
        if (c == 'r') c = '\r';
      }
      value += c;
    }
    if (!Take(quote)) return Wrong("a quote is not closed");
    return value;
  }

  std::optional<int64_t> Integer() {
    int64_t number = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error != std::errc()) return std::nullopt;
    at_ += static_cast<size_t>(end - begin);
    return number;
  }

  base::Result<Path> ReadPath() {
    Path path;
    SkipBlanks();
    if (Take('$')) {
      path.from_root = true;
    } else if (!Take('@') && at_ < text_.size() && text_[at_] != '.' && text_[at_] != '[') {
      return Wrong("a path starts with '.', '$', '@' or '['");
    }
    while (at_ < text_.size()) {
      if (Take("..")) {
        path.steps.emplace_back(Descend{});
        if (at_ < text_.size() && text_[at_] == '[') continue;
        FL_RETURN_IF_ERROR(ReadName(&path));
      } else if (Take('.')) {
        // `.` by itself is the value; `.[0]` is allowed.
        if (at_ >= text_.size() || text_[at_] == '[' || text_[at_] == '}') continue;
        FL_RETURN_IF_ERROR(ReadName(&path));
      } else if (Take('[')) {
        FL_RETURN_IF_ERROR(ReadBracket(&path));
      } else {
        break;
      }
    }
    return path;
  }

  base::Status ReadName(Path* path) {
    if (Take('*')) {
      path->steps.emplace_back(Wildcard{});
      return base::OkStatus();
    }
    std::string name = Name();
    if (name.empty()) return Wrong("a field name is missing");
    path->steps.emplace_back(Field{std::move(name)});
    return base::OkStatus();
  }

  base::Status ReadBracket(Path* path) {
    SkipBlanks();
    if (Take('?')) {
      FL_ASSIGN_OR_RETURN(Filter filter, ReadFilter());
      path->steps.emplace_back(std::make_shared<const Filter>(std::move(filter)));
      return Expect(']');
    }
    if (Take('*')) {
      path->steps.emplace_back(Wildcard{});
      return Expect(']');
    }
    Union members;
    do {
      SkipBlanks();
      if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) {
        FL_ASSIGN_OR_RETURN(std::string name, Quoted());
        members.members.emplace_back(Field{std::move(name)});
      } else {
        FL_ASSIGN_OR_RETURN(const Slice slice, ReadSlice());
        members.members.emplace_back(slice);
      }
      SkipBlanks();
    } while (Take(','));
    path->steps.emplace_back(std::move(members));
    return Expect(']');
  }

  base::Result<Slice> ReadSlice() {
    Slice slice;
    slice.begin = Integer();
    if (!Take(':')) {
      if (!slice.begin) return Wrong("expected a number, '*', '?' or a quoted name in [ ]");
      slice.single = true;
      return slice;
    }
    slice.end = Integer();
    if (Take(':')) slice.step = Integer().value_or(1);
    if (slice.step < 1) return Wrong("the step of a slice must be at least 1");
    return slice;
  }

  base::Result<Filter> ReadFilter() {
    if (++filters_ > kMaxNesting) return Wrong("nested too deeply");
    Filter filter;
    FL_RETURN_IF_ERROR(Expect('('));
    FL_ASSIGN_OR_RETURN(filter.left, ReadPath());
    SkipBlanks();
    if (Take("==")) {
      filter.comparison = Comparison::kEqual;
    } else if (Take("!=")) {
      filter.comparison = Comparison::kNotEqual;
    } else if (Take("<=")) {
      filter.comparison = Comparison::kLessEqual;
    } else if (Take(">=")) {
      filter.comparison = Comparison::kGreaterEqual;
    } else if (Take('<')) {
      filter.comparison = Comparison::kLess;
    } else if (Take('>')) {
      filter.comparison = Comparison::kGreater;
    }
    if (filter.comparison != Comparison::kExists) {
      FL_ASSIGN_OR_RETURN(filter.right, ReadOperand());
    }
    FL_RETURN_IF_ERROR(Expect(')'));
    return filter;
  }

  base::Result<std::variant<Path, Value>> ReadOperand() {
    using Operand = std::variant<Path, Value>;
    SkipBlanks();
    if (at_ >= text_.size()) return Wrong("a value is missing");
    if (text_[at_] == '\'' || text_[at_] == '"') {
      FL_ASSIGN_OR_RETURN(std::string literal, Quoted());
      return Operand(Value(std::move(literal)));
    }
    if (text_[at_] == '@' || text_[at_] == '$') {
      FL_ASSIGN_OR_RETURN(Path path, ReadPath());
      return Operand(std::move(path));
    }
    if (Take("true")) return Operand(Value(true));
    if (Take("false")) return Operand(Value(false));
    double number = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error != std::errc()) return Wrong("expected a number, a quoted text, true or false");
    at_ += static_cast<size_t>(end - begin);
    return Operand(Value(number));
  }

  const std::string_view text_;
  size_t at_ = 0;
  int filters_ = 0;
};

using Values = std::vector<const Value*>;

void AddChildren(const Value& value, Values* out) {
  if (const Value::List* list = value.As<Value::List>()) {
    for (const Value& item : *list) out->push_back(&item);
  } else if (const Value::Map* map = value.As<Value::Map>()) {
    for (const auto& [key, item] : *map) out->push_back(&item);
  }
}

void AddDescendants(const Value& value, Values* out) {
  out->push_back(&value);
  Values children;
  AddChildren(value, &children);
  for (const Value* child : children) AddDescendants(*child, out);
}

std::optional<double> AsNumber(const Value& value) {
  if (const int64_t* integer = value.As<int64_t>()) return static_cast<double>(*integer);
  if (const double* number = value.As<double>()) return *number;
  return std::nullopt;
}

template <typename T>
bool Holds(Comparison comparison, const T& a, const T& b) {
  switch (comparison) {
    case Comparison::kEqual:
      return a == b;
    case Comparison::kNotEqual:
      return a != b;
    case Comparison::kLess:
      return a < b;
    case Comparison::kLessEqual:
      return a <= b;
    case Comparison::kGreater:
      return a > b;
    case Comparison::kGreaterEqual:
      return a >= b;
    case Comparison::kExists:
      return true;
  }
  return false;
}

bool Compare(Comparison comparison, const Value& a, const Value& b) {
  const std::optional<double> x = AsNumber(a);
  const std::optional<double> y = AsNumber(b);
  if (x && y) return Holds(comparison, *x, *y);
  const std::string* s = a.As<std::string>();
  const std::string* t = b.As<std::string>();
  if (s != nullptr && t != nullptr) return Holds(comparison, *s, *t);
  if (comparison == Comparison::kEqual) return a == b;
  if (comparison == Comparison::kNotEqual) return !(a == b);
  return false;
}

base::Result<Values> Follow(const Path& path, const Value& root, const Value& current);

struct Walk {
  const Value& root;
  const Values& from;
  Values to = {};

  base::Status operator()(const Field& field) {
    for (const Value* value : from) {
      if (const Value* member = value->Find(field.name)) to.push_back(member);
    }
    return base::OkStatus();
  }
  base::Status operator()(const Wildcard&) {
    for (const Value* value : from) AddChildren(*value, &to);
    return base::OkStatus();
  }
  base::Status operator()(const Slice& slice) {
    for (const Value* value : from) {
      const Value::List* list = value->As<Value::List>();
      if (list == nullptr) continue;
      const int64_t size = static_cast<int64_t>(list->size());
      const auto place = [size](int64_t index) { return index < 0 ? index + size : index; };
      if (slice.single) {
        const int64_t index = place(*slice.begin);
        if (index < 0 || index >= size) {
          return base::InvalidArgument("JSON path: index " + std::to_string(*slice.begin) +
                                       " is past the end of a list of " + std::to_string(size));
        }
        to.push_back(&(*list)[static_cast<size_t>(index)]);
        continue;
      }
      const int64_t begin = std::max<int64_t>(0, place(slice.begin.value_or(0)));
      const int64_t end = std::min(size, place(slice.end.value_or(size)));
      for (int64_t i = begin; i < end;) {
        to.push_back(&(*list)[static_cast<size_t>(i)]);
        if (slice.step >= end - i) break;
        i += slice.step;
      }
    }
    return base::OkStatus();
  }
  base::Status operator()(const Union& members) {
    for (const Value* value : from) {
      const Values one = {value};
      for (const auto& member : members.members) {
        Walk walk{root, one};
        FL_RETURN_IF_ERROR(std::visit(walk, member));
        to.insert(to.end(), walk.to.begin(), walk.to.end());
      }
    }
    return base::OkStatus();
  }
  base::Status operator()(const Descend&) {
    for (const Value* value : from) AddDescendants(*value, &to);
    return base::OkStatus();
  }
  base::Status operator()(const std::shared_ptr<const Filter>& filter) {
    Values candidates;
    for (const Value* value : from) AddChildren(*value, &candidates);
    for (const Value* candidate : candidates) {
      FL_ASSIGN_OR_RETURN(const Values left, Follow(filter->left, root, *candidate));
      if (left.empty()) continue;
      if (filter->comparison == Comparison::kExists) {
        to.push_back(candidate);
        continue;
      }
      const Value* right = std::get_if<Value>(&filter->right);
      Values found;
      if (right == nullptr) {
        FL_ASSIGN_OR_RETURN(found, Follow(std::get<Path>(filter->right), root, *candidate));
        if (found.empty()) continue;
        right = found[0];
      }
      if (Compare(filter->comparison, *left[0], *right)) to.push_back(candidate);
    }
    return base::OkStatus();
  }
};

base::Result<Values> Follow(const Path& path, const Value& root, const Value& current) {
  Values values = {path.from_root ? &root : &current};
  for (const Step& step : path.steps) {
    Walk walk{root, values};
    FL_RETURN_IF_ERROR(std::visit(walk, step));
    values = std::move(walk.to);
  }
  return values;
}

std::string Text(const Value& value) {
  if (const std::string* text = value.As<std::string>()) return *text;
  if (value.is_null()) return "";
  return value.ToJson();
}

base::Status Render(const std::vector<Node>& nodes, const Value& root, const Value& current,
                    std::string* out) {
  for (const Node& node : nodes) {
    if (const std::string* text = std::get_if<std::string>(&node.content)) {
      *out += *text;
    } else if (const Path* path = std::get_if<Path>(&node.content)) {
      FL_ASSIGN_OR_RETURN(const Values values, Follow(*path, root, current));
      for (size_t i = 0; i < values.size(); ++i) *out += (i == 0 ? "" : " ") + Text(*values[i]);
    } else {
      const Range& range = std::get<Range>(node.content);
      FL_ASSIGN_OR_RETURN(const Values values, Follow(range.path, root, current));
      for (const Value* value : values) {
        FL_RETURN_IF_ERROR(Render(range.body, root, *value, out));
      }
    }
  }
  return base::OkStatus();
}

}  // namespace

struct JsonPath::Template {
  std::vector<Node> nodes;
};

base::Result<JsonPath> JsonPath::Parse(std::string_view text) {
  std::string braced(text);
  if (text.find('{') == std::string_view::npos) braced = "{" + braced + "}";
  Reader reader(braced);
  FL_ASSIGN_OR_RETURN(std::vector<Node> nodes, reader.Nodes(false, 0));
  JsonPath path;
  path.template_ = std::make_shared<const Template>(Template{std::move(nodes)});
  return path;
}

base::Result<std::string> JsonPath::Evaluate(const spec::Value& data) const {
  std::string text;
  if (template_ != nullptr) FL_RETURN_IF_ERROR(Render(template_->nodes, data, data, &text));
  return text;
}

}  // namespace fl::cli
