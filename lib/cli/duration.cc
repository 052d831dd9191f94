#include "cli/duration.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

namespace fl::cli {
namespace {

struct Unit {
  std::string_view name;
  double seconds;
};
// Longer names first where one is the beginning of another.
constexpr std::array<Unit, 5> kUnits = {
    {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}}};
// A century: far past any wait, far below what nanoseconds in 64 bits hold.
constexpr double kMaxSeconds = 100 * 365.25 * 86400;

base::Status Malformed(std::string_view text) {
  return base::InvalidArgument("\"" + std::string(text) + "\" is not a duration",
                               "write e.g. 90s, 10m or 1h30m");
}

}  // namespace

base::Result<base::Duration> ParseDuration(std::string_view text) {
  std::string_view rest = text;
  double total = 0;
  if (rest.empty()) return Malformed(text);
  while (!rest.empty()) {
    double number = 0;
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
    if (error != std::errc() || !(number >= 0)) return Malformed(text);
    const bool whole = rest.size() == text.size();
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (rest.empty() && whole) {
      total = number;
      break;
    }
    const Unit* unit = nullptr;
    for (const Unit& candidate : kUnits) {
      if (unit == nullptr && rest.starts_with(candidate.name)) unit = &candidate;
    }
    if (unit == nullptr) return Malformed(text);
    rest.remove_prefix(unit->name.size());
    total += number * unit->seconds;
  }
  if (!(total <= kMaxSeconds)) {
    return base::InvalidArgument("\"" + std::string(text) + "\" is too long a duration");
  }
  return base::Duration(static_cast<int64_t>(std::llround(total * 1e9)));
}

}  // namespace fl::cli
