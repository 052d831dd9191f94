#include "base/failpoint.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace fl::base {
namespace {

struct Armed {
  int remaining = 1;
  std::string action;
};

std::mutex mutex;
std::map<std::string, Armed, std::less<>>& Places() {
  static auto* places = new std::map<std::string, Armed, std::less<>>;
  return *places;
}

bool ArmFromEnvironment() {
  const char* spec = std::getenv("FL_FAILPOINTS");
  if (spec == nullptr || *spec == '\0') return false;
  ArmFailpoints(spec);
  return true;
}

}  // namespace

namespace internal {

std::atomic<bool> failpoints_armed = ArmFromEnvironment();

Status HitFailpoint(std::string_view name) {
  std::string action;
  {
    const std::lock_guard lock(mutex);
    const auto found = Places().find(name);
    if (found == Places().end() || found->second.remaining == 0) return OkStatus();
    if (--found->second.remaining != 0) return OkStatus();
    action = found->second.action;
  }
  if (action == "kill") {
    ::kill(::getpid(), SIGKILL);
    while (true) ::pause();
  }
  if (action == "nospace") {
    return ResourceExhausted("no space (failpoint " + std::string(name) + ")");
  }
  if (action.starts_with("wait:")) {
    while (::access(action.c_str() + 5, F_OK) != 0) ::usleep(1000);
    return OkStatus();
  }
  FL_CHECK(action == "error");
  return Unavailable("failpoint " + std::string(name));
}

}  // namespace internal

void ArmFailpoints(std::string_view spec) {
  const std::lock_guard lock(mutex);
  Places().clear();
  while (!spec.empty()) {
    const size_t end = std::min(spec.find(';'), spec.size());
    const std::string_view item = spec.substr(0, end);
    spec.remove_prefix(std::min(end + 1, spec.size()));
    const size_t equals = item.find('=');
    FL_CHECK_MSG(equals != std::string_view::npos, item);
    std::string_view name = item.substr(0, equals);
    Armed armed;
    armed.action = item.substr(equals + 1);
    FL_CHECK_MSG(armed.action == "kill" || armed.action == "error" || armed.action == "nospace" ||
                     armed.action.starts_with("wait:"),
                 item);
    if (const size_t hash = name.find('#'); hash != std::string_view::npos) {
      const std::string_view number = name.substr(hash + 1);
      const auto [end_of_number, error] =
          std::from_chars(number.begin(), number.end(), armed.remaining);
      FL_CHECK_MSG(error == std::errc() && end_of_number == number.end() && armed.remaining > 0,
                   item);
      name = name.substr(0, hash);
    }
    Places()[std::string(name)] = armed;
  }
  internal::failpoints_armed.store(!Places().empty());
}

}  // namespace fl::base
