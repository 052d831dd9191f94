#include "spec/internal/yaml_scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "base/encoding.h"
#include "spec/internal/suggest.h"
#include "spec/internal/utf8.h"

namespace fl::spec::internal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool Contains(std::span<const std::string_view> words, std::string_view text) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::optional<Value> ResolveWord(std::string_view text) {
  static constexpr std::array<std::string_view, 5> kNull{"", "~", "null", "Null", "NULL"};
  static constexpr std::array<std::string_view, 11> kTrue{
      "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
  static constexpr std::array<std::string_view, 11> kFalse{
      "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
  static constexpr std::array<std::string_view, 3> kNan{".nan", ".NaN", ".NAN"};
  static constexpr std::array<std::string_view, 6> kInf{".inf",  ".Inf",  ".INF",
                                                        "+.inf", "+.Inf", "+.INF"};
  static constexpr std::array<std::string_view, 3> kMinusInf{"-.inf", "-.Inf", "-.INF"};
  if (Contains(kNull, text)) return Value();
  if (Contains(kTrue, text)) return Value(true);
  if (Contains(kFalse, text)) return Value(false);
  if (Contains(kNan, text)) return Value(std::numeric_limits<double>::quiet_NaN());
  if (Contains(kInf, text)) return Value(kInfinity);
  if (Contains(kMinusInf, text)) return Value(-kInfinity);
  return std::nullopt;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Go's strconv.ParseInt(text, 0, 64), and ParseUint where the number is too large for that (as a
/// double, which is what is left of it in JSON).
std::optional<Value> ParseInteger(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    text.remove_prefix(mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1);
  }
  uint64_t magnitude = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  if (magnitude <= kMax) {
    const auto number = static_cast<int64_t>(magnitude);
    return Value(negative ? -number : number);
  }
  if (!negative) return Value(static_cast<double>(magnitude));
  if (magnitude == kMax + 1) return Value(std::numeric_limits<int64_t>::min());
  return std::nullopt;
}

/// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool LooksLikeFloat(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t from = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return at - from;
  };
  const auto sign = [&] {
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  };
  sign();
  const size_t whole = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0 && whole == 0) return false;
  } else if (whole == 0) {
    return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    sign();
    if (digits() == 0) return false;
  }
  return at == text.size();
}

/// Too large a number stays text, too small a one is 0, as Go's ParseFloat has it.
std::optional<Value> ParseFloat(std::string_view text) {
  if (!LooksLikeFloat(text)) return std::nullopt;
  if (text[0] == '+') text.remove_prefix(1);
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc()) return Value(number);
  // from_chars does not tell too large from too small; a number below 1 has no digit but 0 in front
  // of its point, or a negative exponent.
  const size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos && text[exponent + 1] == '-') return Value(0.0);
  if (exponent == std::string_view::npos && text.find_first_of("123456789") > text.find('.')) {
    return Value(0.0);
  }
  return std::nullopt;
}

/// Takes out the underscores that stand between two digits.
std::string WithoutSeparators(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool separator = text[i] == '_' && i > 0 && i + 1 < text.size() && IsDigit(text[i - 1]) &&
                           IsDigit(text[i + 1]);
    if (!separator) out += text[i];
  }
  return out;
}

base::Status DoesNotFit(std::string_view text, std::string_view tag) {
  return base::InvalidArgument(Quote(text) + " is no " + std::string(tag));
}

}  // namespace

Value ResolvePlain(std::string_view text) {
  if (std::optional<Value> word = ResolveWord(text)) return *std::move(word);
  const char first = text[0];
  if (first == '.') {
    if (std::optional<Value> number = ParseFloat(WithoutSeparators(text)))
      return *std::move(number);
  } else if (IsDigit(first) || first == '-' || first == '+') {
    std::string plain(text);
    std::erase(plain, '_');
    if (std::optional<Value> number = ParseInteger(plain)) return *std::move(number);
    if (std::optional<Value> number = ParseFloat(plain)) return *std::move(number);
  }
  return Value(text);
}

base::Result<Value> ResolveTagged(std::string_view tag, std::string_view text) {
  constexpr std::string_view kPrefix = "tag:yaml.org,2002:";
  if (tag == "!" || tag == "tag:yaml.org,2002:str") return Value(text);
  if (!tag.starts_with(kPrefix)) {
    return base::InvalidArgument("the tag " + std::string(tag) + " is not known",
                                 "leave the tag out");
  }
  const std::string name = "!!" + std::string(tag.substr(kPrefix.size()));
  if (name == "!!binary") {
    base::Result<std::vector<uint8_t>> bytes = base::Base64Decode(text);
    if (!bytes.ok()) return DoesNotFit(text, "base64, as !!binary asks for");
    std::string decoded(base::AsText(*bytes));
    if (!IsValidUtf8(decoded)) return base::InvalidArgument("the bytes of !!binary are no UTF-8");
    return Value(std::move(decoded));
  }
  if (name == "!!timestamp") return Value(text);
  Value plain = ResolvePlain(text);
  if (name == "!!int") {
    if (plain.type() != Value::Type::kInt) return DoesNotFit(text, name);
  } else if (name == "!!float") {
    if (const int64_t* integer = plain.As<int64_t>()) return Value(static_cast<double>(*integer));
    if (plain.type() != Value::Type::kDouble) return DoesNotFit(text, name);
  } else if (name == "!!bool") {
    if (plain.type() != Value::Type::kBool) return DoesNotFit(text, name);
  } else if (name == "!!null") {
    if (!plain.is_null()) return DoesNotFit(text, name);
  } else {
    return base::InvalidArgument("the tag " + name + " is not known", "leave the tag out");
  }
  return plain;
}

}  // namespace fl::spec::internal
