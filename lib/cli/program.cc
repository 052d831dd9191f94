#include "cli/program.h"

#include <algorithm>
#include <map>

#include "cli/internal/complete.h"
#include "cli/internal/help.h"
#include "cli/internal/parser.h"
#include "cli/internal/resolve.h"
#include "obs/log.h"

namespace fl::cli {
namespace {

using Arguments = std::vector<std::string>;

bool IsHelpFlag(const std::string& word) { return word == "-h" || word == "--help"; }

void FillFromEnvironment(Context& context) {
  const std::map<std::string, std::string*> variables = {
      {"FL_TOKEN_FILE", &context.global.token_file}, {"FL_CA_FILE", &context.global.ca_file}};
  for (const auto& [name, to] : variables) {
    if (to->empty()) *to = context.Environment(name).value_or("");
  }
}

base::Status RunResolved(Context& context, const internal::Resolved& resolved,
                         const std::vector<Option>& global_flags,
                         const std::function<void(const Command&)>& before_run) {
  const Command& command = *resolved.command;
  const bool raw = command.run_raw != nullptr;
  Arguments own = resolved.leading;
  if (!raw) own.insert(own.end(), resolved.rest.begin(), resolved.rest.end());

  std::vector<Option> flags = command.flags;
  for (const Option& flag : global_flags) flags.push_back(flag);
  FL_RETURN_IF_ERROR(internal::ParseArguments(internal::UsageLine(resolved.path, command), flags,
                                              raw ? std::vector<Option>() : command.arguments,
                                              own));
  FillFromEnvironment(context);
  FL_ASSIGN_OR_RETURN(const obs::Level level, obs::ParseLevel(context.global.log_level));
  obs::ConfigureLog(obs::LogFormat::kAuto, level);
  if (before_run) before_run(command);
  return raw ? command.run_raw(context, resolved.rest) : command.run(context);
}

/// `fl help`, `fl help models list`.
base::Status Help(Context& context, const CommandTable& table,
                  const std::vector<Option>& global_flags, const Arguments& words) {
  Arguments names;
  for (const std::string& word : words) {
    if (!word.starts_with('-')) names.push_back(word);
  }
  FL_ASSIGN_OR_RETURN(const internal::Resolved resolved,
                      internal::Resolve(context.program, table, global_flags, names));
  const Style style = context.OutStyle();
  context.out << (resolved.command == nullptr
                      ? internal::ProgramHelp(context.program, table, global_flags, style)
                      : internal::CommandHelp(resolved.path, *resolved.command, global_flags,
                                              style));
  return base::OkStatus();
}

base::Status Dispatch(Context& context, const CommandTable& table, const Arguments& arguments,
                      const std::function<void(const Command&)>& before_run) {
  const std::vector<Option> global_flags = GlobalFlags(context.global);
  if (!arguments.empty() && arguments[0] == "help") {
    return Help(context, table, global_flags, {arguments.begin() + 1, arguments.end()});
  }
  if (!arguments.empty() && arguments[0] == "__complete") {
    FillFromEnvironment(context);
    return internal::Complete(context, table, global_flags,
                              {arguments.begin() + 1, arguments.end()});
  }
  FL_ASSIGN_OR_RETURN(const internal::Resolved resolved,
                      internal::Resolve(context.program, table, global_flags, arguments));
  const auto asks_for_help = [](const Arguments& words) {
    for (const std::string& word : words) {
      if (word == "--") return false;
      if (IsHelpFlag(word)) return true;
    }
    return false;
  };
  const bool raw = resolved.command != nullptr && resolved.command->run_raw != nullptr;
  if (asks_for_help(resolved.leading) || (!raw && asks_for_help(resolved.rest))) {
    Arguments names;
    std::string path = resolved.path.substr(context.program.size());
    for (size_t begin = 1; begin < path.size();) {
      const size_t end = std::min(path.find(' ', begin), path.size());
      names.push_back(path.substr(begin, end - begin));
      begin = end + 1;
    }
    return Help(context, table, global_flags, names);
  }
  if (resolved.command == nullptr) {
    if (!resolved.leading.empty()) {
      if (resolved.leading[0] == "--version") return Dispatch(context, table, {"version"}, nullptr);
      return base::InvalidArgument("no command given",
                                   "run \"" + context.program + " --help\" for the commands");
    }
    return Help(context, table, global_flags, {});
  }
  if (!resolved.command->commands.empty()) {
    std::string names;
    for (const Command& command : resolved.command->commands) {
      if (!command.hidden) names += (names.empty() ? "" : ", ") + command.name;
    }
    return base::InvalidArgument("\"" + resolved.path + "\" needs a command: " + names,
                                 "run \"" + resolved.path + " --help\" for what they do");
  }
  return RunResolved(context, resolved, global_flags, before_run);
}

}  // namespace

void PrintError(Context& context, const base::Status& status) {
  const Style style = context.ErrStyle();
  context.err << style.Paint(Ink::kRed, "fl: error:") << " " << status.message() << "\n";
  if (!status.hint().empty()) {
    context.err << style.Paint(Ink::kCyan, "hint:") << " " << status.hint() << "\n";
  }
}

int Run(Context& context, const CommandTable& table, const std::vector<std::string>& arguments,
        const std::function<void(const Command&)>& before_run) {
  base::Status status = Dispatch(context, table, arguments, before_run);
  context.out.flush();
  if (status.ok() && !context.out && !context.output_closed()) {
    status = base::ResourceExhausted("cannot write to standard output");
  }
  if (!status.ok() && !(context.output_closed() && status.code() == base::Code::kCancelled)) {
    PrintError(context, status);
  }
  context.err.flush();
  if (context.output_closed() && status.code() == base::Code::kCancelled) return 0;
  return base::Describe(status.code()).exit_code;
}

}  // namespace fl::cli
