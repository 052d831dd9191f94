#include "spec/internal/decode.h"

#include <algorithm>
#include <cmath>

#include "spec/internal/fields.h"
#include "spec/internal/path.h"
#include "spec/internal/suggest.h"

namespace fl::spec::internal {
namespace {

class Reader {
 public:
  explicit Reader(Problems& problems) : problems_(problems) {}

  void Read(const Value& value, const std::string& path, bool& out) {
    if (const bool* flag = value.As<bool>()) {
      out = *flag;
    } else {
      Report(path, "must be true or false, not " + Found(value));
    }
  }

  void Read(const Value& value, const std::string& path, int64_t& out) {
    // Go's JSON writes 1e3 and 5.0 as whole numbers, so that the API server takes them as such.
    constexpr double kExact = 9007199254740992.0;
    const double* number = value.As<double>();
    if (const int64_t* integer = value.As<int64_t>()) {
      out = *integer;
    } else if (number != nullptr && std::trunc(*number) == *number && std::abs(*number) <= kExact) {
      out = static_cast<int64_t>(*number);
    } else if (value.is_string()) {
      Report(path, "must be a whole number, not a string: take the quotes off");
    } else {
      Report(path, "must be a whole number, not " + Found(value));
    }
  }

  void Read(const Value& value, const std::string& path, std::string& out) {
    if (const std::string* text = value.As<std::string>()) {
      out = *text;
    } else if (value.As<bool>() != nullptr) {
      Report(path, "must be a string, but is read as " + Found(value) + ": put it in quotes");
    } else if (value.As<int64_t>() != nullptr || value.As<double>() != nullptr) {
      Report(path, "must be a string: write \"" + value.ToJson() + "\" in quotes");
    } else {
      Report(path, "must be a string, not " + Found(value));
    }
  }

  void Read(const Value& value, const std::string& path, Fraction& out) {
    const size_t before = problems_.size();
    std::string text;
    Read(value, path, text);
    if (problems_.size() > before) return;
    base::Result<Fraction> fraction = Fraction::Parse(text);
    if (fraction.ok()) {
      out = *std::move(fraction);
    } else {
      Report(path, fraction.status().message());
    }
  }

  void Read(const Value& value, const std::string& path, Quantity& out) {
    if (const int64_t* integer = value.As<int64_t>()) {
      out.text = std::to_string(*integer);
    } else {
      Read(value, path, out.text);
    }
  }

  template <NamedEnum E>
  void Read(const Value& value, const std::string& path, E& out) {
    const size_t before = problems_.size();
    std::string text;
    Read(value, path, text);
    if (problems_.size() > before) return;
    if (std::optional<E> known = EnumFromName<E>(text)) {
      out = *known;
      return;
    }
    const auto& names = EnumTable<E>::kNames;
    const std::vector<std::string_view> known(names.begin(), names.end());
    Report(path, "must be " + OneOf(known) + ", not " + Quote(text) + DidYouMean(text, known));
  }

  void Read(const Value& value, const std::string& /*path*/, Value& out) { out = value; }

  void Read(const Value& value, const std::string& path, Value::Map& out) {
    if (const Value::Map* map = value.As<Value::Map>()) {
      out = *map;
    } else {
      Report(path, "must be a map, not " + Found(value));
    }
  }

  template <typename T>
  void Read(const Value& value, const std::string& path, std::optional<T>& out) {
    Read(value, path, out.emplace());
  }

  template <typename T>
  void Read(const Value& value, const std::string& path, std::vector<T>& out) {
    const Value::List* list = value.As<Value::List>();
    if (list == nullptr) {
      Report(path, "must be a list, not " + Found(value));
      return;
    }
    out.clear();
    for (size_t i = 0; i < list->size(); ++i) {
      Read((*list)[i], JoinIndex(path, i), out.emplace_back());
    }
  }

  template <typename T>
  void Read(const Value& value, const std::string& path, std::map<std::string, T>& out) {
    const Value::Map* map = value.As<Value::Map>();
    if (map == nullptr) {
      Report(path, "must be a map, not " + Found(value));
      return;
    }
    out.clear();
    for (const auto& [key, member] : *map) Read(member, JoinKey(path, key), out[key]);
  }

  template <typename T>
    requires requires(Reader& reader, T& out) { Fields(reader, out); }
  void Read(const Value& value, const std::string& path, T& out) {
    const Value::Map* map = value.As<Value::Map>();
    if (map == nullptr) {
      Report(path, "must be a map, not " + Found(value));
      return;
    }
    Reader inner(problems_);
    inner.map_ = map;
    inner.path_ = &path;
    Fields(inner, out);
    inner.ReportUnknown();
  }

  // What Fields() calls.
  void Required(std::string_view name, auto& member, const Rule& /*rule*/ = {}) {
    if (!Field(name, member)) Report(JoinKey(*path_, name), "is required");
  }
  void Optional(std::string_view name, auto& member, const Rule& /*rule*/ = {}) {
    Field(name, member);
  }
  void Ignored(std::initializer_list<std::string_view> names) {
    ignored_.insert(ignored_.end(), names.begin(), names.end());
  }

 private:
  /// The value for messages: `"x"` would repeat what may be long, so only the type, and small
  /// scalars.
  static std::string Found(const Value& value) {
    if (value.As<bool>() != nullptr) return "the boolean " + value.ToJson();
    if (value.As<int64_t>() != nullptr || value.As<double>() != nullptr) return value.ToJson();
    return std::string(Describe(value.type()));
  }

  bool Field(std::string_view name, auto& member) {
    known_.push_back(name);
    const auto found = map_->find(name);
    if (found == map_->end()) return false;
    const std::string path = JoinKey(*path_, name);
    if (found->second.is_null()) {
      if (*path_ != "metadata" && !path_->ends_with(".metadata")) {
        Report(path, "must have a value: give it one or leave the field out");
      }
      return true;
    }
    Read(found->second, path, member);
    return true;
  }

  void ReportUnknown() {
    for (const auto& entry : *map_) {
      const std::string& key = entry.first;
      const auto listed = [&key](const std::vector<std::string_view>& names) {
        return std::find(names.begin(), names.end(), key) != names.end();
      };
      if (listed(known_) || listed(ignored_)) continue;
      const std::string hint = DidYouMean(key, known_);
      Report(JoinKey(*path_, key),
             "unknown field" + (hint.empty() ? ": known here are " + Known() : hint));
    }
  }

  std::string Known() const {
    std::string text;
    for (const std::string_view name : known_) {
      if (!text.empty()) text += ", ";
      text += name;
    }
    return text;
  }

  void Report(const std::string& path, std::string message) {
    problems_.push_back({"", 0, path, std::move(message)});
  }

  Problems& problems_;
  const Value::Map* map_ = nullptr;
  const std::string* path_ = nullptr;
  std::vector<std::string_view> known_;
  std::vector<std::string_view> ignored_;
};

}  // namespace

template <typename T>
void Decode(const Value& tree, const std::string& path, T& object, Problems& problems) {
  Reader(problems).Read(tree, path, object);
}

template void Decode(const Value&, const std::string&, FederatedModel&, Problems&);
template void Decode(const Value&, const std::string&, FederatedClient&, Problems&);
template void Decode(const Value&, const std::string&, FederatedLearningJob&, Problems&);

}  // namespace fl::spec::internal
