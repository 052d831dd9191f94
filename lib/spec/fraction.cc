#include "spec/fraction.h"

#include <charconv>
#include <system_error>

namespace fl::spec {
namespace {

/// Matches Fraction::kPattern.
bool IsDecimal(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t from = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at > from;
  };
  const auto take = [&](std::string_view any) {
    const bool there = at < text.size() && any.find(text[at]) != std::string_view::npos;
    if (there) ++at;
    return there;
  };
  take("-");
  if (!digits()) return false;
  if (take(".") && !digits()) return false;
  if (take("eE")) {
    take("+-");
    if (!digits()) return false;
  }
  return at == text.size();
}

}  // namespace

base::Result<Fraction> Fraction::Parse(std::string_view text) {
  if (text.size() > kMaxLength) {
    return base::InvalidArgument("has " + std::to_string(text.size()) + " characters, at most " +
                                 std::to_string(kMaxLength) + " are allowed");
  }
  const std::string quoted = "\"" + std::string(text) + "\"";
  if (!IsDecimal(text)) {
    return base::InvalidArgument("must be a decimal number such as \"0.1\" or \"1e-5\", not " +
                                 quoted);
  }
  Fraction fraction;
  fraction.text_ = text;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fraction.value_);
  if (error != std::errc()) {
    return base::InvalidArgument("must be a number that a double can hold; " + quoted +
                                 " is too large or too close to 0");
  }
  return fraction;
}

}  // namespace fl::spec
