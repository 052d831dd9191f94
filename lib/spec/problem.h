#pragma once

/// What is wrong with an object, and where.

#include <string>
#include <vector>

#include "base/status.h"

namespace fl::spec {

struct Problem {
  std::string source;   ///< name of the file; empty where there is none
  int line = 0;         ///< from 1; 0 where it is not known
  std::string path;     ///< "spec.selection.quorum"; empty for the whole document
  std::string message;  ///< says what is wrong and what to write instead

  /// "FILE:LINE: path: message", without the parts that are not known.
  std::string ToString() const;
  friend bool operator==(const Problem&, const Problem&) = default;
};

using Problems = std::vector<Problem>;

/// OK where there are none, else kInvalidArgument with them, one a line; at most twenty, and how
/// many more there are.
base::Status ToStatus(const Problems& problems);

}  // namespace fl::spec
