#pragma once

/// Which blobs a repository needs.

#include <set>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "registry/store.h"

namespace fl::registry::internal {

/// Adds the manifest `root` and all it names, through indexes too, to `reached`. A manifest that
/// cannot be read is an error: what it names cannot be known.
base::Status AddReachable(ContentStore& store, const Descriptor& root,
                          std::set<base::Digest>& reached);

}  // namespace fl::registry::internal
