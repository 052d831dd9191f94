#pragma once

/// The policies behind the table of selector.h: one source file each.

#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/random.h"
#include "base/status.h"
#include "strategy/select/selector.h"

namespace fl::strategy::internal {

base::Result<std::unique_ptr<Selector>> MakePoisson(const SelectionSpec& spec,
                                                    base::RandomSource& secure);
base::Result<std::unique_ptr<Selector>> MakeRandom(const SelectionSpec& spec,
                                                   base::RandomSource& secure);

/// The candidates by name. kInvalidArgument for one given twice.
base::Result<std::vector<base::ClientName>> SortedCandidates(const SelectionRequest& request);

}  // namespace fl::strategy::internal
