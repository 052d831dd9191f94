#pragma once

#include <string_view>

namespace fl::cli::internal {

/// The files of completions/, as they were when this was built.
extern const std::string_view kBashCompletion;
extern const std::string_view kZshCompletion;
extern const std::string_view kFishCompletion;

}  // namespace fl::cli::internal
