#include "cli/internal/resolve.h"

#include <set>

#include "cli/internal/suggest.h"

namespace fl::cli::internal {
namespace {

/// Which flags take a value and which do not, over all commands.
struct FlagNames {
  std::set<std::string> values;
  std::set<std::string> switches;

  void Add(const std::vector<Option>& flags) {
    for (const Option& flag : flags) {
      for (const std::string& name : flag.Names()) {
        (flag.is_switch() ? switches : values).insert(name);
      }
    }
  }
  void Add(const std::vector<Command>& commands) {
    for (const Command& command : commands) {
      Add(command.flags);
      Add(command.commands);
    }
  }
};

base::Status UnknownCommand(const std::string& path, const std::string& word,
                            const std::vector<std::string>& candidates) {
  const std::string near = Suggest(word, candidates);
  return base::InvalidArgument("unknown command \"" + word + "\" for \"" + path + "\"",
                               near.empty()
                                   ? "run \"" + path + " --help\" for the commands there are"
                                   : "did you mean \"" + near + "\"?");
}

}  // namespace

base::Result<Resolved> Resolve(const std::string& program, const CommandTable& table,
                               const std::vector<Option>& global_flags,
                               const std::vector<std::string>& arguments) {
  FlagNames known;
  known.Add(global_flags);
  for (const CommandGroup& group : table.groups) known.Add(group.commands);

  Resolved resolved;
  resolved.path = program;
  size_t i = 0;
  while (i < arguments.size()) {
    const std::string& word = arguments[i];
    const auto find = [&](const std::string& name) {
      return resolved.command == nullptr ? table.Find(name) : resolved.command->Find(name);
    };
    if (word == "--") break;
    if (word.size() > 1 && word[0] == '-') {
      resolved.leading.push_back(word);
      ++i;
      // -f is a file for `submit` and a switch for `logs`: then a command's name is no file.
      const bool value = i < arguments.size() && known.values.contains(word) &&
                         !(known.switches.contains(word) && find(arguments[i]) != nullptr);
      if (value) {
        resolved.leading.push_back(arguments[i++]);
      }
      continue;
    }
    const bool top = resolved.command == nullptr;
    const Command* next = find(word);
    if (next == nullptr) {
      std::vector<std::string> candidates;
      if (top) {
        candidates = table.Names();
      } else {
        for (const Command& command : resolved.command->commands) {
          if (!command.hidden) candidates.push_back(command.name);
        }
      }
      return UnknownCommand(resolved.path, word, candidates);
    }
    resolved.command = next;
    resolved.path += " " + word;
    ++i;
    if (next->commands.empty()) break;
  }
  resolved.rest.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
  return resolved;
}

}  // namespace fl::cli::internal
