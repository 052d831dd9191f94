#include <charconv>

#include "spec/internal/decode.h"
#include "spec/internal/fields.h"
#include "spec/internal/path.h"

namespace fl::spec::internal {
namespace {

std::string Shortest(double value) {
  std::string text = Value(value).ToJson();
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

class Checker {
 public:
  Checker(Problems& problems, std::string path) : problems_(problems), path_(std::move(path)) {}

  void Required(std::string_view name, const auto& member, const Rule& rule = {}) {
    const std::string path = JoinKey(path_, name);
    if constexpr (requires { member.empty(); }) {
      if (member.empty()) {
        Report(path, "is required");
        return;
      }
    }
    Check(path, member, rule);
  }
  void Optional(std::string_view name, const auto& member, const Rule& rule = {}) {
    Check(JoinKey(path_, name), member, rule);
  }
  template <typename T>
  void Optional(std::string_view name, const std::optional<T>& member, const Rule& rule = {}) {
    if (!member) return;
    const std::string path = JoinKey(path_, name);
    if constexpr (std::same_as<T, std::string>) {
      if (member->empty()) {
        Report(path, "must not be empty: leave the field out");
        return;
      }
    }
    Check(path, *member, rule);
  }
  void Ignored(std::initializer_list<std::string_view> /*names*/) {}

 private:
  void Check(const std::string& path, const std::string& text, const Rule& rule) {
    if (text.size() > rule.max_length) {
      Report(path, "must have at most " + std::to_string(rule.max_length) + " characters, not " +
                       std::to_string(text.size()));
    } else if (rule.text != nullptr) {
      if (std::string problem = rule.text(text); !problem.empty()) Report(path, problem);
    }
  }

  void Check(const std::string& path, int64_t number, const Rule& rule) {
    if (number < rule.min || number > rule.max) {
      Report(path, "must be from " + std::to_string(rule.min) + " to " + std::to_string(rule.max) +
                       ", not " + std::to_string(number));
    }
  }

  void Check(const std::string& path, const Fraction& fraction, const Rule& rule) {
    const double value = fraction.value();
    std::string wanted;
    if (!(value > rule.more_than)) {
      wanted = "greater than " + Shortest(rule.more_than);
    } else if (!(value >= rule.at_least)) {
      wanted = "at least " + Shortest(rule.at_least);
    } else if (!(value < rule.less_than)) {
      wanted = "less than " + Shortest(rule.less_than);
    } else if (!(value <= rule.at_most)) {
      wanted = "at most " + Shortest(rule.at_most);
    }
    if (!wanted.empty()) Report(path, "must be " + wanted + ", not \"" + fraction.text() + "\"");
  }

  void Check(const std::string& path, const Quantity& quantity, const Rule& /*rule*/) {
    if (std::string problem = CheckQuantity(quantity.text); !problem.empty()) Report(path, problem);
  }

  void Check(const std::string& path, const Value::Map& map, const Rule& rule) {
    CheckCount(path, map.size(), rule);
  }

  template <typename T>
  void Check(const std::string& path, const std::vector<T>& list, const Rule& rule) {
    CheckCount(path, list.size(), rule);
    for (size_t i = 0; i < list.size(); ++i) Check(JoinIndex(path, i), list[i], rule);
  }

  template <typename T>
  void Check(const std::string& path, const std::map<std::string, T>& map, const Rule& rule) {
    CheckCount(path, map.size(), rule);
    for (const auto& [key, value] : map) {
      const std::string at = JoinKey(path, key);
      if (rule.key != nullptr) {
        if (std::string problem = rule.key(key); !problem.empty()) Report(at, "the key " + problem);
      }
      Check(at, value, rule);
    }
  }

  void Check(const std::string& /*path*/, bool /*flag*/, const Rule& /*rule*/) {}
  void Check(const std::string& /*path*/, const Value& /*tree*/, const Rule& /*rule*/) {}
  template <NamedEnum E>
  void Check(const std::string& /*path*/, E /*value*/, const Rule& /*rule*/) {}

  template <typename T>
    requires requires(Checker& checker, const T& value) { Fields(checker, value); }
  void Check(const std::string& path, const T& section, const Rule& /*rule*/) {
    Checker inner(problems_, path);
    Fields(inner, section);
  }

  void CheckCount(const std::string& path, size_t count, const Rule& rule) {
    if (count > rule.max_items) {
      Report(path, "must have at most " + std::to_string(rule.max_items) + " entries, not " +
                       std::to_string(count));
    }
  }

  void Report(const std::string& path, std::string message) {
    problems_.push_back({"", 0, path, std::move(message)});
  }

  Problems& problems_;
  std::string path_;
};

}  // namespace

template <typename T>
void CheckFields(const T& object, Problems& problems) {
  Checker checker(problems, "");
  Fields(checker, object);
}

template void CheckFields(const FederatedModel&, Problems&);
template void CheckFields(const FederatedClient&, Problems&);
template void CheckFields(const FederatedLearningJob&, Problems&);

}  // namespace fl::spec::internal
