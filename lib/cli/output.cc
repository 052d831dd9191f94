#include "cli/output.h"

#include <array>
#include <cstdio>

#include "spec/json.h"

namespace fl::cli {

base::Result<OutputFormat> OutputFormat::Parse(std::string_view text) {
  OutputFormat format;
  constexpr std::string_view kJsonPathPrefix = "jsonpath=";
  if (text.starts_with(kJsonPathPrefix)) {
    format.kind_ = Kind::kJsonPath;
    FL_ASSIGN_OR_RETURN(format.path_, JsonPath::Parse(text.substr(kJsonPathPrefix.size())));
    return format;
  }
  constexpr std::array<std::pair<std::string_view, Kind>, 5> kNames = {{{"table", Kind::kTable},
                                                                        {"wide", Kind::kWide},
                                                                        {"json", Kind::kJson},
                                                                        {"yaml", Kind::kYaml},
                                                                        {"name", Kind::kName}}};
  for (const auto& [name, kind] : kNames) {
    if (name == text) {
      format.kind_ = kind;
      return format;
    }
  }
  return base::InvalidArgument("unknown output format \"" + std::string(text) + "\"",
                               "write -o table, wide, json, yaml, name or jsonpath=TEMPLATE");
}

base::Status OutputFormat::Print(Context& context, const Document& document) const {
  switch (kind_) {
    case Kind::kTable:
    case Kind::kWide:
      if (!document.text.empty()) {
        context.out << document.text;
      } else if (document.table.rows.empty()) {
        if (!document.empty.empty()) context.err << document.empty << "\n";
      } else {
        context.out << document.table.ToText(kind_ == Kind::kWide);
      }
      return base::OkStatus();
    case Kind::kJson:
      context.out << document.data.ToPrettyJson(2) << "\n";
      return base::OkStatus();
    case Kind::kYaml: {
      const std::string text = document.data.ToYaml();
      context.out << text << (text.ends_with('\n') ? "" : "\n");
      return base::OkStatus();
    }
    case Kind::kName:
      for (const std::string& name : document.names) context.out << name << "\n";
      return base::OkStatus();
    case Kind::kJsonPath: {
      FL_ASSIGN_OR_RETURN(const std::string text, path_.Evaluate(document.data));
      context.out << text;
      // kubectl prints no end of line; on a terminal the prompt would stick to the value.
      if (context.out_is_terminal && !text.ends_with('\n')) context.out << "\n";
      return base::OkStatus();
    }
  }
  return base::OkStatus();
}

Option OutputFlag(std::string* to) {
  return {.names = "-o,--output",
          .value = "FORMAT",
          .help = "table, wide, json, yaml, name or jsonpath=TEMPLATE",
          .to = to,
          .completes = Completes::kOutput};
}

spec::Value ListOf(spec::Value::List items) {
  return spec::Value::Map{{"apiVersion", "v1"}, {"items", std::move(items)}, {"kind", "List"}};
}

spec::Value ValueFromJson(std::string_view json) {
  const base::Result<spec::Value> value = spec::ParseJson(json);
  FL_CHECK_MSG(value.ok(), value.status().message());
  return *value;
}

std::string FormatMetric(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

std::string FormatMetrics(const std::map<std::string, double>& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) {
    text += (text.empty() ? "" : " ") + name + "=" + FormatMetric(value);
  }
  return text;
}

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " B";
  constexpr std::array<const char*, 6> kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (value /= 1000; value >= 999.95 && unit + 1 < kUnits.size(); value /= 1000) ++unit;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits[unit]);
  return text.data();
}

std::string FormatAge(base::Time then, base::Time now) {
  if (then == base::Time()) return "";
  const int64_t seconds =
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(now - then).count());
  // Steps as kubectl has them: two units while the larger one is small.
  if (seconds < 120) return std::to_string(seconds) + "s";
  const int64_t minutes = seconds / 60;
  if (minutes < 10) {
    const int64_t rest = seconds % 60;
    return std::to_string(minutes) + "m" + (rest == 0 ? "" : std::to_string(rest) + "s");
  }
  if (minutes < 180) return std::to_string(minutes) + "m";
  const int64_t hours = minutes / 60;
  if (hours < 8) {
    const int64_t rest = minutes % 60;
    return std::to_string(hours) + "h" + (rest == 0 ? "" : std::to_string(rest) + "m");
  }
  if (hours < 48) return std::to_string(hours) + "h";
  return std::to_string(hours / 24) + "d";
}

}  // namespace fl::cli
