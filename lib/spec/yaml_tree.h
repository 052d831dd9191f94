#pragma once

#include <string_view>

#include "base/status.h"
#include "spec/value.h"

namespace fl::spec {

/// Reads one YAML document as a tree, for configuration files that are none of the kinds: within
/// the limits of parse.h, scalars as kubectl reads them, duplicate keys refused. Values know their
/// lines. Null where the text is empty. kInvalidArgument with all problems, one
/// "SOURCE:LINE: path: message" a line; more than one document is a problem. Pure, re-entrant.
base::Result<Value> ParseYamlTree(std::string_view text, std::string_view source);

}  // namespace fl::spec
