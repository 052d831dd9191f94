#include "spec/value.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "spec/internal/utf8.h"
#include "spec/internal/yaml_scalar.h"

namespace fl::spec {
namespace {

void AppendDouble(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::array<char, 32> buffer;
  auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  FL_CHECK(error == std::errc());
  std::string_view text(buffer.data(), static_cast<size_t>(end - buffer.data()));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

/// Quotes as JSON does. What YAML calls not printable is escaped too, so that the text may stand in
/// a YAML document as well.
void AppendQuoted(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  auto escape = [&out, kHex](uint32_t code_point) {
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += kHex[(code_point >> shift) & 0xF];
  };
  out += '"';
  while (!text.empty()) {
    const internal::CodePoint next = internal::NextCodePoint(text);
    if (!next.valid) {
      out += "\\ufffd";
    } else if (next.value == '"' || next.value == '\\') {
      out += '\\';
      out += static_cast<char>(next.value);
    } else if (next.value == '\n') {
      out += "\\n";
    } else if (next.value == '\t') {
      out += "\\t";
    } else if (next.value < 0x20 || next.value == 0x2028 || next.value == 0x2029 ||
               !internal::IsPrintable(next.value)) {
      escape(next.value);
    } else {
      out += text.substr(0, next.length);
    }
    text.remove_prefix(next.length);
  }
  out += '"';
}

void AppendScalar(const Value& value, std::string& out) {
  if (value.is_null()) {
    out += "null";
  } else if (const bool* flag = value.As<bool>()) {
    out += *flag ? "true" : "false";
  } else if (const int64_t* integer = value.As<int64_t>()) {
    out += std::to_string(*integer);
  } else if (const double* number = value.As<double>()) {
    AppendDouble(*number, out);
  } else {
    AppendQuoted(*value.As<std::string>(), out);
  }
}

void AppendBreak(int indent, int level, std::string& out) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent) * static_cast<size_t>(level), ' ');
}

/// `indent` < 0: compact.
void AppendJson(const Value& value, int indent, int level, std::string& out) {
  if (const Value::List* list = value.As<Value::List>()) {
    out += '[';
    bool first = true;
    for (const Value& item : *list) {
      if (!first) out += ',';
      first = false;
      AppendBreak(indent, level + 1, out);
      AppendJson(item, indent, level + 1, out);
    }
    if (!first) AppendBreak(indent, level, out);
    out += ']';
  } else if (const Value::Map* map = value.As<Value::Map>()) {
    out += '{';
    bool first = true;
    for (const auto& [key, member] : *map) {
      if (!first) out += ',';
      first = false;
      AppendBreak(indent, level + 1, out);
      AppendQuoted(key, out);
      out += indent < 0 ? ":" : ": ";
      AppendJson(member, indent, level + 1, out);
    }
    if (!first) AppendBreak(indent, level, out);
    out += '}';
  } else {
    AppendScalar(value, out);
  }
}

bool IsPlainSafe(std::string_view text) {
  constexpr std::string_view kInside =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  if (text.empty() || text.find_first_not_of(kInside) != std::string_view::npos) return false;
  if (text.front() == '-' || text.front() == '.') return false;
  return internal::ResolvePlain(text).is_string();
}

void AppendYamlText(std::string_view text, std::string& out) {
  if (IsPlainSafe(text)) {
    out += text;
  } else {
    AppendQuoted(text, out);
  }
}

/// Writes `value` where the cursor stands behind "key:" or "-"; `level` is the level of its
/// members.
void AppendYaml(const Value& value, int level, bool after_dash, std::string& out) {
  const std::string margin(2 * static_cast<size_t>(level), ' ');
  if (const Value::List* list = value.As<Value::List>(); list != nullptr && !list->empty()) {
    bool first = true;
    for (const Value& item : *list) {
      out += first && after_dash ? " " : "\n" + margin;
      first = false;
      out += '-';
      AppendYaml(item, level + 1, true, out);
    }
  } else if (const Value::Map* map = value.As<Value::Map>(); map != nullptr && !map->empty()) {
    bool first = true;
    for (const auto& [key, member] : *map) {
      out += first && after_dash ? " " : "\n" + margin;
      first = false;
      AppendYamlText(key, out);
      out += ':';
      AppendYaml(member, level + 1, false, out);
    }
  } else if (const std::string* text = value.As<std::string>()) {
    out += ' ';
    AppendYamlText(*text, out);
  } else {
    out += ' ';
    AppendJson(value, -1, 0, out);  // a scalar, [] or {}
  }
}

}  // namespace

const Value* Value::Find(std::string_view key) const {
  const Map* map = As<Map>();
  if (map == nullptr) return nullptr;
  auto found = map->find(key);
  return found == map->end() ? nullptr : &found->second;
}

std::string Value::ToJson() const {
  std::string out;
  AppendJson(*this, -1, 0, out);
  return out;
}

std::string Value::ToPrettyJson(int indent) const {
  std::string out;
  AppendJson(*this, indent, 0, out);
  return out;
}

std::string Value::ToYaml() const {
  std::string out;
  AppendYaml(*this, 0, false, out);
  out.erase(0, 1);  // the break or blank in front of the first line
  out += '\n';
  return out;
}

std::string_view Describe(Value::Type type) {
  switch (type) {
    case Value::Type::kNull:
      return "null";
    case Value::Type::kBool:
      return "a boolean";
    case Value::Type::kInt:
    case Value::Type::kDouble:
      return "a number";
    case Value::Type::kString:
      return "a string";
    case Value::Type::kList:
      return "a list";
    case Value::Type::kMap:
      return "a map";
  }
  FL_CHECK(false);
}

}  // namespace fl::spec
