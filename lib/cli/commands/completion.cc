#include <memory>

#include "cli/commands/commands.h"
#include "cli/internal/completion_scripts.h"

namespace fl::cli {

Command CompletionCommand() {
  auto shell = std::make_shared<std::string>();
  return {.name = "completion",
          .summary = "Print the completion script for a shell",
          .examples = {{"In ~/.bashrc", "source <(fl completion bash)"},
                       {"In ~/.zshrc, after compinit", "source <(fl completion zsh)"},
                       {"For fish", "fl completion fish > ~/.config/fish/completions/fl.fish"}},
          .arguments = {{.names = "SHELL",
                         .help = "bash, zsh or fish",
                         .to = shell.get(),
                         .required = true,
                         .choices = {"bash", "zsh", "fish"}}},
          .run = [shell](Context& context) {
            context.out << (*shell == "bash"  ? internal::kBashCompletion
                            : *shell == "zsh" ? internal::kZshCompletion
                                              : internal::kFishCompletion);
            return base::OkStatus();
          }};
}

}  // namespace fl::cli
