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
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += problem.ToString();
  }
  return base::InvalidArgument(std::move(text));
}

}  // namespace fl::spec
