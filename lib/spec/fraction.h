#pragma once

/// Numbers that are no integers. Kubernetes bars floating-point fields, so they are written as
/// strings ("0.1") and kept as written, beside the double they stand for.

#include <string>
#include <string_view>

#include "base/status.h"

namespace fl::spec {

class Fraction {
 public:
  /// The pattern of the text, the same as in the CRDs; at most kMaxLength characters.
  static constexpr std::string_view kPattern = R"(^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$)";
  static constexpr size_t kMaxLength = 32;

  Fraction() = default;
  /// Reads a decimal number. kInvalidArgument for another form (nan, inf, hexadecimal, ".5",
  /// blanks), for one that is longer, and for one that a double cannot hold ("1e400", "1e-400").
  static base::Result<Fraction> Parse(std::string_view text);

  /// As it was written.
  const std::string& text() const { return text_; }
  /// The nearest double; finite, and zero only where the text says zero.
  double value() const { return value_; }

  /// The same text: "1" and "1.0" differ, as they do for the API server's transition rules.
  friend bool operator==(const Fraction& a, const Fraction& b) { return a.text_ == b.text_; }

 private:
  std::string text_ = "0";
  double value_ = 0;
};

}  // namespace fl::spec
