#pragma once

/// What a command has to say, in the format the user asked for.

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/command.h"
#include "cli/context.h"
#include "cli/json_path.h"
#include "cli/table.h"
#include "spec/value.h"

namespace fl::cli {

/// A result in all its forms.
struct Document {
  spec::Value data;                ///< for json, yaml, jsonpath
  Table table;                     ///< for table, wide
  std::vector<std::string> names;  ///< for name: "job/digits"
  std::string empty;               ///< said on stderr where the table has no rows, e.g. "no jobs"
  std::string text;                ///< for table and wide instead of `table`, where not empty
};

/// The flag -o of commands that print data.
class OutputFormat {
 public:
  enum class Kind { kTable, kWide, kJson, kYaml, kName, kJsonPath };

  /// "table", "wide", "json", "yaml", "name", "jsonpath=TEMPLATE". kInvalidArgument.
  static base::Result<OutputFormat> Parse(std::string_view text);

  Kind kind() const { return kind_; }
  /// True where people read it as it comes (table, wide).
  bool ForPeople() const { return kind_ == Kind::kTable || kind_ == Kind::kWide; }
  /// kInvalidArgument where a JSON path does not fit the data.
  base::Status Print(Context& context, const Document& document) const;

 private:
  Kind kind_ = Kind::kTable;
  JsonPath path_;
};

/// The option `-o,--output` whose value goes to `*to`.
Option OutputFlag(std::string* to);

/// `kind: List` around `items`, as kubectl prints several objects.
spec::Value ListOf(spec::Value::List items);

/// Reads the JSON that a module of ours wrote.
spec::Value ValueFromJson(std::string_view json);

/// "0.9534": four digits after the point where it is small, as metrics are read.
std::string FormatMetric(double value);
/// "accuracy=0.9534 loss=0.1203".
std::string FormatMetrics(const std::map<std::string, double>& metrics);
/// "512 B", "4.0 kB", "1.2 GB": decimal units.
std::string FormatBytes(uint64_t bytes);
/// "5m", "3h12m", "2d": how long before `now` that was; "" for an unset time.
std::string FormatAge(base::Time then, base::Time now);

}  // namespace fl::cli
