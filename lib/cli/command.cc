#include "cli/command.h"

#include <algorithm>

namespace fl::cli {

std::vector<std::string> Option::Names() const {
  std::vector<std::string> result;
  size_t begin = 0;
  while (begin <= names.size()) {
    const size_t comma = std::min(names.find(',', begin), names.size());
    result.push_back(names.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return result;
}

const Command* Command::Find(std::string_view command) const {
  for (const Command& candidate : commands) {
    if (candidate.name == command) return &candidate;
  }
  return nullptr;
}

const Command* CommandTable::Find(std::string_view command) const {
  for (const CommandGroup& group : groups) {
    for (const Command& candidate : group.commands) {
      if (candidate.name == command) return &candidate;
    }
  }
  return nullptr;
}

std::vector<std::string> CommandTable::Names() const {
  std::vector<std::string> names;
  for (const CommandGroup& group : groups) {
    for (const Command& command : group.commands) {
      if (!command.hidden) names.push_back(command.name);
    }
  }
  return names;
}

std::vector<Option> GlobalFlags(GlobalOptions& options) {
  return {
      {.names = "--aggregator",
       .value = "URL",
       .help = "A running aggregator (FL_AGGREGATOR)",
       .to = &options.aggregator},
      {.names = "--registry",
       .value = "URI",
       .help = "A registry: file:PATH or a folder (FL_REGISTRY)",
       .to = &options.registry,
       .completes = Completes::kFolder},
      {.names = "--token-file",
       .value = "FILE",
       .help = "Holds the administrator's token (FL_TOKEN_FILE)",
       .to = &options.token_file,
       .completes = Completes::kFile},
      {.names = "--ca-file",
       .value = "FILE",
       .help = "Certificate authorities to trust, PEM (FL_CA_FILE)",
       .to = &options.ca_file,
       .completes = Completes::kFile},
      {.names = "--insecure",
       .value = "",
       .help = "Allow http:// and certificates that are not trusted",
       .to = &options.insecure},
      {.names = "--color",
       .value = "WHEN",
       .help = "Colours: auto, always or never (NO_COLOR)",
       .to = &options.color,
       .choices = {"auto", "always", "never"}},
      {.names = "--log-level",
       .value = "LEVEL",
       .help = "Least level of log lines on stderr",
       .to = &options.log_level,
       .choices = {"debug", "info", "warning", "error"}},
  };
}

}  // namespace fl::cli
