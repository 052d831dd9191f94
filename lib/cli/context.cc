#include "cli/context.h"

namespace fl::cli {
namespace {

bool WantsColor(const Context& context, bool terminal) {
  if (context.global.color == "always") return true;
  if (context.global.color == "never" || !terminal) return false;
  // https://no-color.org: any value that is not empty.
  return !context.Environment("NO_COLOR") && context.Environment("TERM") != "dumb";
}

bool LocaleIsUtf8(const Context& context) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (const std::optional<std::string> value = context.Environment(name)) {
      return value->find("UTF-8") != std::string::npos || value->find("utf8") != std::string::npos;
    }
  }
  return false;
}

Style StyleFor(const Context& context, bool terminal) {
  return {.color = WantsColor(context, terminal), .unicode = terminal && LocaleIsUtf8(context)};
}

}  // namespace

std::optional<std::string> Context::Environment(std::string_view name) const {
  const auto found = environment.find(std::string(name));
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

Style Context::OutStyle() const { return StyleFor(*this, out_is_terminal); }
Style Context::ErrStyle() const { return StyleFor(*this, err_is_terminal); }

}  // namespace fl::cli
