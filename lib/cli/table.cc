#include "cli/table.h"

#include <algorithm>

#include "base/check.h"
#include "cli/style.h"

namespace fl::cli {

std::string Table::ToText(bool wide) const {
  if (rows.empty()) return "";
  constexpr size_t kGap = 3;
  std::vector<size_t> shown;
  std::vector<size_t> widths(columns.size(), 0);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].wide && !wide) continue;
    shown.push_back(i);
    widths[i] = DisplayWidth(columns[i].title);
    for (const std::vector<std::string>& row : rows) {
      FL_CHECK(row.size() == columns.size());
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  std::string text;
  const auto add_line = [&](const auto& cell) {
    for (size_t n = 0; n < shown.size(); ++n) {
      const size_t i = shown[n];
      const std::string content = cell(i);
      const std::string padding(widths[i] - DisplayWidth(content), ' ');
      const bool last = n + 1 == shown.size();
      if (columns[i].right) {
        text += padding + content;
      } else {
        text += content;
        if (!last) text += padding;
      }
      if (!last) text += std::string(kGap, ' ');
    }
    text += "\n";
  };
  add_line([&](size_t i) { return columns[i].title; });
  for (const std::vector<std::string>& row : rows) {
    add_line([&](size_t i) { return row[i].empty() ? std::string("-") : row[i]; });
  }
  return text;
}

}  // namespace fl::cli
