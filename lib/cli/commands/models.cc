#include "cli/commands/commands.h"

namespace fl::cli {

Command ModelsCommand() {
  return {
      .name = "models",
      .summary = "Versions of models: where they come from, what changed, whether they are intact",
      .examples = {{"Where a model stands", "fl models list --registry ./fl-registry"},
                   {"How it got there", "fl models history digits --registry ./fl-registry"}},
      .commands = {ModelsListCommand(), ModelsShowCommand(), ModelsHistoryCommand(),
                   ModelsDiffCommand(), ModelsVerifyCommand(), ModelsExportCommand(),
                   ModelsImportCommand(), ModelsGcCommand()}};
}

}  // namespace fl::cli
