#pragma once

/// Updates on disk between their arrival and the aggregation: one file for each client of a round,
/// private to the daemon.

#include "base/file.h"
#include "base/ids.h"
#include "base/status.h"

namespace fl::aggregator {

/// Paths only; holds nothing open. Thread-safe.
class Spool {
 public:
  explicit Spool(base::Path root) : root_(std::move(root)) {}

  /// Makes the round's folder (mode 0700). kResourceExhausted where `bytes` do not fit on the disk,
  /// with both numbers in the message.
  base::Status Prepare(const base::JobName& job, base::RoundNumber round, int64_t attempt,
                       uint64_t bytes) const;
  base::Path UpdatePath(const base::JobName& job, base::RoundNumber round, int64_t attempt,
                        const base::ClientName& client) const;
  /// Removes all rounds of the job but (round, attempt); half-written files in it go too.
  base::Status KeepOnly(const base::JobName& job, base::RoundNumber round, int64_t attempt) const;
  base::Status RemoveJob(const base::JobName& job) const;

 private:
  base::Path RoundFolder(const base::JobName& job, base::RoundNumber round, int64_t attempt) const;
  const base::Path root_;
};

}  // namespace fl::aggregator
