#pragma once

/// The state as people see it. All are called with core.mutex held.

#include <vector>

#include "aggregator/core.h"
#include "wire/status.h"

namespace fl::aggregator {

wire::RoundStatus MakeRoundStatus(const Core& core, const Round& round, bool with_clients);
/// `active` is the job whose turn it is, or null.
wire::JobStatus MakeJobStatus(const Core& core, const JobEntry& job, const JobEntry* active);
wire::JobView MakeJobView(const Core& core, const JobEntry& job, const JobEntry* active);
std::vector<wire::ClientStatus> MakeClientStatuses(const Core& core);
wire::AggregatorStatus MakeAggregatorStatus(Core& core);
/// Reads the registry, which may fail; needs no lock but the repository's own.
base::Result<std::vector<wire::VersionStatus>> MakeVersionStatuses(
    registry::ModelRepository& repository);

}  // namespace fl::aggregator
