#include "obs/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>

namespace fl::obs {
namespace {

std::atomic<LogFormat> configured_format{LogFormat::kAuto};
std::atomic<Level> least_level{Level::kInfo};

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "error";
}

LogFormat EffectiveFormat() {
  const LogFormat format = configured_format.load();
  if (format != LogFormat::kAuto) return format;
  static const bool terminal = ::isatty(STDERR_FILENO) == 1;
  return terminal ? LogFormat::kText : LogFormat::kJson;
}

spdlog::logger& Sink() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made =
        std::make_shared<spdlog::logger>("fl", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

nlohmann::ordered_json ToJson(const Field::Value& value) {
  return std::visit([](const auto& v) { return nlohmann::ordered_json(v); }, value);
}

std::string Dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string Format(LogFormat format, const std::string& time, Level level, std::string_view message,
                   std::initializer_list<Field> fields) {
  if (format == LogFormat::kJson) {
    nlohmann::ordered_json line;
    if (!time.empty()) line["time"] = time;
    line["level"] = LevelName(level);
    line["msg"] = message;
    for (const Field& field : fields) line[std::string(field.key)] = ToJson(field.value);
    return Dump(line);
  }
  std::string line = time.empty() ? "" : time + " ";
  line += std::string(LevelName(level)) + " " + std::string(message);
  for (const Field& field : fields) {
    line += " " + std::string(field.key) + "=";
    const auto* text = std::get_if<std::string>(&field.value);
    const bool bare =
        text != nullptr && !text->empty() && text->find_first_of(" \"\n\t=\\") == std::string::npos;
    line += bare ? *text : Dump(ToJson(field.value));
  }
  return line;
}

}  // namespace

void ConfigureLog(LogFormat format, Level least) {
  configured_format = format;
  least_level = least;
}

base::Result<Level> ParseLevel(std::string_view name) {
  for (Level level : {Level::kDebug, Level::kInfo, Level::kWarning, Level::kError}) {
    if (name == LevelName(level)) return level;
  }
  return base::InvalidArgument("log level \"" + std::string(name) + "\" is not known",
                               "one of debug, info, warning, error");
}

void Log(Level level, std::string_view message, std::initializer_list<Field> fields) {
  if (level < least_level.load()) return;
  Sink().log(spdlog::level::info, "{}",
             Format(EffectiveFormat(), base::FormatTime(base::Clock::System().Now()), level,
                    message, fields));
}

std::string FormatLogLine(LogFormat format, Level level, std::string_view message,
                          std::initializer_list<Field> fields) {
  return Format(format, "", level, message, fields);
}

}  // namespace fl::obs
