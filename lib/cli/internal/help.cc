#include "cli/internal/help.h"

#include <algorithm>

namespace fl::cli::internal {
namespace {

constexpr size_t kWidth = 100;

/// Left column and text, the text wrapped under itself.
std::string TwoColumns(const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t left = 0;
  for (const auto& [name, text] : rows) left = std::max(left, DisplayWidth(name));
  std::string result;
  for (const auto& [name, text] : rows) {
    const size_t indent = 2 + left + 3;
    std::string line = "  " + name + std::string(left - DisplayWidth(name) + 3, ' ');
    size_t column = indent;
    size_t begin = 0;
    while (begin < text.size()) {
      const size_t end = std::min(text.find(' ', begin), text.size());
      const std::string word = text.substr(begin, end - begin);
      if (column > indent && column + 1 + DisplayWidth(word) > kWidth) {
        line += "\n" + std::string(indent, ' ');
        column = indent;
      }
      if (column > indent) {
        line += ' ';
        ++column;
      }
      line += word;
      column += DisplayWidth(word);
      begin = end + 1;
    }
    result += line + "\n";
  }
  return result;
}

std::string FlagColumn(const Option& flag) {
  const std::vector<std::string> names = flag.Names();
  std::string text = names.front().size() == 2 ? "" : "    ";
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (!flag.is_switch()) text += " " + flag.value;
  return text;
}

std::string FlagSection(const std::string& title, const std::vector<Option>& flags,
                        const Style& style) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Option& flag : flags) {
    if (flag.hidden) continue;
    std::string help = flag.help;
    if (!flag.choices.empty() && help.find(flag.choices.back()) == std::string::npos) {
      help += " (";
      for (const std::string& choice : flag.choices) {
        help += (choice == flag.choices.front() ? "" : ", ") + choice;
      }
      help += ")";
    }
    if (flag.is_list()) help += "; may be repeated";
    rows.emplace_back(FlagColumn(flag), help);
  }
  if (rows.empty()) return "";
  return "\n" + style.Paint(Ink::kBold, title) + "\n" + TwoColumns(rows);
}

std::vector<std::pair<std::string, std::string>> Summaries(const std::vector<Command>& commands) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Command& command : commands) {
    if (!command.hidden) rows.emplace_back(command.name, command.summary);
  }
  return rows;
}

}  // namespace

std::string UsageLine(const std::string& path, const Command& command) {
  if (!command.commands.empty()) return path + " COMMAND";
  std::string line = path;
  if (command.run_raw != nullptr) return line + " [arguments]";
  bool optional_flags = false;
  for (const Option& flag : command.flags) {
    if (flag.required) {
      line += " " + flag.Names().front() + " " + flag.value + (flag.is_list() ? "..." : "");
    } else {
      optional_flags = optional_flags || !flag.hidden;
    }
  }
  for (const Option& argument : command.arguments) {
    const std::string name = argument.names + (argument.is_list() ? "..." : "");
    line += argument.required ? " " + name : " [" + name + "]";
  }
  return optional_flags ? line + " [flags]" : line;
}

std::string CommandHelp(const std::string& path, const Command& command,
                        const std::vector<Option>& global_flags, const Style& style) {
  std::string text = command.summary + ".\n";
  if (!command.description.empty()) text += "\n" + command.description + "\n";
  text += "\n" + style.Paint(Ink::kBold, "Usage") + "\n  " + UsageLine(path, command) + "\n";
  if (!command.examples.empty()) {
    text += "\n" + style.Paint(Ink::kBold, "Examples") + "\n";
    for (size_t i = 0; i < command.examples.size(); ++i) {
      if (i > 0) text += "\n";
      text += "  " + style.Paint(Ink::kDim, "# " + command.examples[i].comment) + "\n  " +
              command.examples[i].line + "\n";
    }
  }
  if (!command.commands.empty()) {
    text +=
        "\n" + style.Paint(Ink::kBold, "Commands") + "\n" + TwoColumns(Summaries(command.commands));
    text += "\nMore about one of them: " + path + " COMMAND --help\n";
    return text;
  }
  std::vector<std::pair<std::string, std::string>> arguments;
  for (const Option& argument : command.arguments) {
    arguments.emplace_back(argument.names, argument.help);
  }
  if (!arguments.empty()) {
    text += "\n" + style.Paint(Ink::kBold, "Arguments") + "\n" + TwoColumns(arguments);
  }
  text += FlagSection("Flags", command.flags, style);
  if (command.run_raw == nullptr) {
    std::vector<Option> general;
    for (const Option& flag : global_flags) {
      // What points at an aggregator or a registry says nothing to a command that uses neither.
      const bool everywhere = flag.names == "--color" || flag.names == "--log-level";
      if (everywhere || command.uses_target) general.push_back(flag);
    }
    text += FlagSection("Global flags", general, style);
  }
  return text;
}

std::string ProgramHelp(const std::string& program, const CommandTable& table,
                        const std::vector<Option>& global_flags, const Style& style) {
  std::string text = "Federated learning: train one model on data that stays where it is.\n\n" +
                     style.Paint(Ink::kBold, "Usage") + "\n  " + program + " COMMAND [flags]\n";
  for (const CommandGroup& group : table.groups) {
    text +=
        "\n" + style.Paint(Ink::kBold, group.title) + "\n" + TwoColumns(Summaries(group.commands));
  }
  text += FlagSection("Global flags", global_flags, style);
  text += "\nMore about a command: " + program + " help COMMAND\n";
  return text;
}

}  // namespace fl::cli::internal
