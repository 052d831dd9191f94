#include "spec/problem.h"

namespace fl::spec {

std::string Problem::ToString() const {
  std::string text;
  if (!source.empty()) text += source + ":";
  if (line > 0) text += std::to_string(line) + ":";
  if (!text.empty()) text += " ";
  if (!path.empty()) text += path + ": ";
  return text + message;
}

base::Status ToStatus(const Problems& problems) {
  if (problems.empty()) return base::OkStatus();
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t i = 0; i < problems.size() && i < kShown; ++i) {
    if (i > 0) text += '\n';
    text += problems[i].ToString();
  }
  if (problems.size() > kShown) {
    text += "\nand " + std::to_string(problems.size() - kShown) + " more";
  }
  return base::InvalidArgument(std::move(text));
}

}  // namespace fl::spec
