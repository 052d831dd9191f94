#pragma once

/// All that a command may touch of the process it runs in, so that tests run commands in process
/// with streams, environment and clock of their own.

#include <functional>
#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "cli/style.h"

namespace fl::cli {

/// Flags that every command takes.
struct GlobalOptions {
  std::string aggregator;  ///< URL of a running aggregator
  std::string registry;    ///< URI of a registry
  std::string token_file;  ///< holds the administrator's token
  std::string ca_file;     ///< authorities to trust, PEM; empty: the system's
  bool insecure = false;   ///< plain http, and certificates are not checked
  std::string color = "auto";
  std::string log_level = "warning";
};

/// One invocation of a program. One thread.
struct Context {
  std::istream& in;   ///< what `-` means as a file
  std::ostream& out;  ///< data
  std::ostream& err;  ///< talk

  std::string program = "fl";  ///< as the user calls it, in help and messages
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  int columns = 0;  ///< of the terminal `out`; 0 where it is none
  std::map<std::string, std::string> environment;
  base::Clock* clock = &base::Clock::System();
  /// Do without an answer that does not come at once (completion).
  bool impatient = false;
  /// Requested on Ctrl-C for commands that are `interruptible`.
  std::stop_token stop;
  /// Where the programs of this installation are.
  base::Path program_directory;
  /// Replaces this process by argv; returns only the error. Tests put a recorder here.
  std::function<base::Status(const std::vector<std::string>& argv)> execute;
  /// True once nobody reads `out` any more.
  std::function<bool()> output_closed = [] { return false; };

  GlobalOptions global;  ///< set by Run

  /// A variable of the environment, where it is set and not empty.
  std::optional<std::string> Environment(std::string_view name) const;
  /// Colours and icons for `out`, from --color, NO_COLOR, TERM, the locale and the terminal.
  Style OutStyle() const;
  /// The same for `err`.
  Style ErrStyle() const;
};

}  // namespace fl::cli
