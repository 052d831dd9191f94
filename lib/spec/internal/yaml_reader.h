#pragma once

/// Documents as trees. Pure; the exceptions of yaml-cpp and nlohmann stay inside.

#include <string_view>
#include <vector>

#include "base/status.h"
#include "spec/problem.h"
#include "spec/value.h"

namespace fl::spec::internal {

struct Tree {
  Value root;
  /// What is wrong with the document itself; if not empty, `root` may lack something.
  Problems problems;
  /// False where the text could not be read to its end.
  bool complete = true;
};

/// Every document of `text` that is not empty.
std::vector<Tree> ReadYaml(std::string_view text);

/// One JSON text; `complete` is false where it is not JSON. The line count starts at `first_line`.
Tree ReadJson(std::string_view text, int first_line);

}  // namespace fl::spec::internal
