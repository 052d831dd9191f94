#pragma once

/// A command as data: what it is called, what it takes, what it does. Parsing, help, did-you-mean
/// and completion are all made from it.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cli/context.h"

namespace fl::cli {

/// Where a value goes. It keeps what it holds where the user gives none. A bool is a switch; a list
/// takes one or more values each time it is given.
using Destination = std::variant<bool*, std::string*, std::optional<std::string>*, int64_t*,
                                 std::optional<int64_t>*, std::optional<double>*, base::Duration*,
                                 std::optional<base::Duration>*, std::vector<std::string>*>;

/// What a shell offers for a value.
enum class Completes {
  kNothing,
  kFile,
  kFolder,
  kJob,
  kModel,
  kClient,
  kVersion,
  kResource,
  kOutput,
  kCommand
};

/// A flag, or an argument that stands without one.
struct Option {
  std::string names;  ///< of a flag "-f,--filename" or "--rounds"; of an argument its placeholder
  std::string value;  ///< placeholder of a flag's value, e.g. "FILE"; "" for a switch
  std::string help;   ///< one sentence
  Destination to;
  bool required = false;
  std::vector<std::string> choices;  ///< the only values allowed, where not empty
  Completes completes = Completes::kNothing;
  bool hidden = false;  ///< not in help and completion

  bool is_switch() const { return std::holds_alternative<bool*>(to); }
  bool is_list() const { return std::holds_alternative<std::vector<std::string>*>(to); }
  /// {"-f", "--filename"}.
  std::vector<std::string> Names() const;
};

struct Example {
  std::string comment;
  std::string line;
};

/// A command, or a group of commands (`models …`).
struct Command {
  std::string name;
  std::string summary;      ///< one line, for the list of commands
  std::string description;  ///< paragraphs for its own help; "" where the summary says it all
  std::vector<Example> examples;
  std::vector<Option> flags;
  std::vector<Option> arguments;  ///< in order; only the last may be a list
  /// Takes --aggregator, --registry and the like.
  bool uses_target = false;
  /// Ends by `context.stop` on Ctrl-C, instead of dying by the signal.
  bool interruptible = false;
  bool hidden = false;
  std::function<base::Status(Context&)> run;
  /// Instead of `run`: takes whatever follows the command as it stands, --help too.
  std::function<base::Status(Context&, const std::vector<std::string>& arguments)> run_raw;
  std::vector<Command> commands;  ///< of a group

  /// nullptr where there is none of that name.
  const Command* Find(std::string_view command) const;
};

/// A heading of `fl --help` and the commands under it.
struct CommandGroup {
  std::string title;
  std::vector<Command> commands;
};

/// Every command of the program.
struct CommandTable {
  std::vector<CommandGroup> groups;

  const Command* Find(std::string_view command) const;
  /// Names of all that are not hidden.
  std::vector<std::string> Names() const;
};

/// The flags that every command takes; values go to `options`.
std::vector<Option> GlobalFlags(GlobalOptions& options);

}  // namespace fl::cli
