#include "base/clock.h"

#include <cinttypes>
#include <cstdio>

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

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

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
  const Status bad = InvalidArgument("\"" + std::string(text) +
                                     "\" is not a time in UTC such as 2026-11-30T20:54:58Z");
  // 'd' stands for a digit, all else for itself.
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  if (text.size() < kShape.size()) return bad;
  for (size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] == 'd' ? !IsDigit(text[i]) : text[i] != kShape[i]) return bad;
  }
  const auto number = [text](size_t begin, size_t length) {
    int value = 0;
    for (char c : text.substr(begin, length)) value = value * 10 + (c - '0');
    return value;
  };
  const int year = number(0, 4);
  const int hour = number(11, 2);
  const int minute = number(14, 2);
  const int second = number(17, 2);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  // Second 60 is a leap second.
  if (!date.ok() || hour > 23 || minute > 59 || second > 60 || year < 1678 || year > 2261) {
    return bad;
  }

  std::string_view rest = text.substr(kShape.size());
  int64_t nanos = 0;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    if (rest.empty() || !IsDigit(rest.front())) return bad;
    for (int64_t unit = 100'000'000; !rest.empty() && IsDigit(rest.front()); unit /= 10) {
      nanos += unit * (rest.front() - '0');
      rest.remove_prefix(1);
    }
  }
  if (rest != "Z" && rest != "+00:00") return bad;
  return Time(std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
              std::chrono::minutes(minute) + std::chrono::seconds(second) +
              std::chrono::nanoseconds(nanos));
}

std::string FormatDuration(Duration duration) {
  if (duration < Duration(0) && duration != Duration::min()) return "-" + FormatDuration(-duration);
  constexpr int64_t kMilli = 1'000'000;
  const int64_t millis = duration.count() / kMilli + (duration.count() % kMilli >= kMilli / 2);
  char text[64];
  if (millis < 1000) {
    std::snprintf(text, sizeof text, "%" PRId64 "ms", millis);
  } else if (const int64_t tenths = (millis + 50) / 100; tenths < 600) {
    std::snprintf(text, sizeof text, "%" PRId64 ".%" PRId64 "s", tenths / 10, tenths % 10);
  } else if (const int64_t seconds = (millis + 500) / 1000; seconds < 3600) {
    std::snprintf(text, sizeof text, "%" PRId64 "m%" PRId64 "s", seconds / 60, seconds % 60);
  } else {
    const int64_t minutes = (seconds + 30) / 60;
    std::snprintf(text, sizeof text, "%" PRId64 "h%" PRId64 "m", minutes / 60, minutes % 60);
  }
  return text;
}

}  // namespace fl::base
