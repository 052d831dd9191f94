#pragma once

/// From a document's tree to one of the kinds.

#include <optional>
#include <string>

#include "spec/problem.h"
#include "spec/types.h"
#include "spec/validate.h"

namespace fl::spec::internal {

/// The object that `tree` holds, read and validated; nullopt where anything is wrong with it, which
/// is then in `problems`, with lines. `path` stands before all paths ("items[3]").
std::optional<Object> ReadObject(const Value& tree, const std::string& path, Problems& problems,
                                 AgentKeys keys = AgentKeys::kGiven);

}  // namespace fl::spec::internal
