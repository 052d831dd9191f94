#pragma once

/// What a YAML scalar means: YAML 1.1 as sigs.k8s.io/yaml, and with it kubectl, resolves it. The
/// test compares with a table that sigs.k8s.io/yaml 1.6 made (testdata/scalars.tsv).

#include <string>
#include <string_view>

#include "base/status.h"
#include "spec/value.h"

namespace fl::spec::internal {

/// A plain scalar without a tag. `.nan` and `.inf` give a double that is not finite, for which the
/// caller has the better message.
Value ResolvePlain(std::string_view text);

/// A scalar with the tag `tag`, e.g. "tag:yaml.org,2002:str"; "!" (quoted) is a string. Tags
/// outside YAML's own are kInvalidArgument, and so is a text that the tag does not fit.
base::Result<Value> ResolveTagged(std::string_view tag, std::string_view text);

}  // namespace fl::spec::internal
