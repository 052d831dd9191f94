#include "base/clock.h"

#include <cstdio>
#include <ctime>

namespace fl::base {
namespace {

class SystemClock final : public Clock {
 public:
  Time Now() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  }
  Instant Monotonic() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  }
};

}  // namespace

Clock& Clock::System() {
  static SystemClock clock;
  return clock;
}

std::string FormatTime(Time time) {
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(millis);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(millis - day);
  char text[64];
  std::snprintf(
      text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

Result<Time> ParseTime(std::string_view text) {
  const std::string copy(text);
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, used = 0;
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute,
                  &second, &used) != 6) {
    return InvalidArgument("\"" + copy + "\" is not a time such as 2026-11-30T20:54:58Z");
  }
  std::string_view rest = std::string_view(copy).substr(static_cast<size_t>(used));
  int64_t nanos = 0;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    int64_t unit = 100'000'000;
    while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
      nanos += unit * (rest.front() - '0');
      unit /= 10;
      rest.remove_prefix(1);
    }
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if ((rest != "Z" && rest != "+00:00") || !date.ok() || hour > 23 || minute > 59 || second > 60) {
    return InvalidArgument("\"" + copy + "\" is not a time in UTC such as 2026-11-30T20:54:58Z");
  }
  return Time(std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
              std::chrono::minutes(minute) + std::chrono::seconds(second) +
              std::chrono::nanoseconds(nanos));
}

std::string FormatDuration(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  char text[64];
  if (seconds < 1) {
    std::snprintf(text, sizeof text, "%.0fms", seconds * 1e3);
  } else if (seconds < 60) {
    std::snprintf(text, sizeof text, "%.1fs", seconds);
  } else if (seconds < 3600) {
    const int whole = static_cast<int>(seconds);
    std::snprintf(text, sizeof text, "%dm%ds", whole / 60, whole % 60);
  } else {
    const long minutes = static_cast<long>(seconds / 60);
    std::snprintf(text, sizeof text, "%ldh%ldm", minutes / 60, minutes % 60);
  }
  return text;
}

}  // namespace fl::base
