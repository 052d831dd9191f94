#include "cli/internal/suggest.h"

#include <algorithm>

namespace fl::cli::internal {
namespace {

/// Optimal string alignment distance.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before;
  std::vector<size_t> above(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t> row(b.size() + 1);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = std::move(above);
    above = std::move(row);
  }
  return above[b.size()];
}

}  // namespace

std::string Suggest(std::string_view typed, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 64;  // nobody mistypes a longer word into one of ours
  if (typed.size() > kLongest) return "";
  std::string best;
  size_t fewest = std::max<size_t>(1, typed.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = Distance(typed, candidate);
    if (distance < fewest) {
      fewest = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace fl::cli::internal
