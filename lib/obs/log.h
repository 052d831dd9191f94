#pragma once

/// Structured logs. A line is a level, a short constant message and fields. On a terminal it is
/// text for a reader; elsewhere one JSON object a line with `time`, `level`, `msg` and the fields.
/// Lines go to stderr. Thread-safe. Secrets (tokens, private keys, sample counts under privacy) are
/// never fields.

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"

namespace fl::obs {

enum class Level { kDebug, kInfo, kWarning, kError };

/// One named value of a log line.
struct Field {
  using Value = std::variant<std::string, int64_t, double, bool>;
  std::string_view key;
  Value value;

  Field(std::string_view k, std::string_view v) : key(k), value(std::string(v)) {}
  Field(std::string_view k, const std::string& v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(std::string(v)) {}
  Field(std::string_view k, bool v) : key(k), value(v) {}
  Field(std::string_view k, double v) : key(k), value(v) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Field(std::string_view k, T v) : key(k), value(static_cast<int64_t>(v)) {}
  template <typename Tag>
  Field(std::string_view k, const base::Name<Tag>& v) : key(k), value(v.str()) {}
  template <typename Tag>
  Field(std::string_view k, const base::Number<Tag>& v) : key(k), value(v.value()) {}
  Field(std::string_view k, const base::Status& v) : key(k), value(v.ToString()) {}
};

enum class LogFormat { kAuto, kText, kJson };  ///< kAuto: text where stderr is a terminal

/// Sets format and least level for the process; kAuto and kInfo until then.
void ConfigureLog(LogFormat format, Level least);
/// "debug", "info", "warning" or "error". kInvalidArgument.
base::Result<Level> ParseLevel(std::string_view name);

void Log(Level level, std::string_view message, std::initializer_list<Field> fields = {});
inline void Debug(std::string_view m, std::initializer_list<Field> f = {}) {
  Log(Level::kDebug, m, f);
}
inline void Info(std::string_view m, std::initializer_list<Field> f = {}) {
  Log(Level::kInfo, m, f);
}
inline void Warning(std::string_view m, std::initializer_list<Field> f = {}) {
  Log(Level::kWarning, m, f);
}
inline void Error(std::string_view m, std::initializer_list<Field> f = {}) {
  Log(Level::kError, m, f);
}

/// The line that Log would print, without its time and end: for tests.
std::string FormatLogLine(LogFormat format, Level level, std::string_view message,
                          std::initializer_list<Field> fields);

}  // namespace fl::obs
