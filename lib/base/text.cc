#include "base/text.h"

namespace fl::base {

std::string Count(int64_t count, std::string_view singular, std::string_view plural) {
  const std::string many = plural.empty() ? std::string(singular) + "s" : std::string(plural);
  return std::to_string(count) + " " + (count == 1 ? std::string(singular) : many);
}

std::string AllOf(int64_t count, std::string_view singular, std::string_view plural) {
  if (count == 1) return "the only " + std::string(singular);
  return "all " + Count(count, singular, plural);
}

}  // namespace fl::base
