#include "aggregator/spool.h"

#include <filesystem>

namespace fl::aggregator {

base::Path Spool::RoundFolder(const base::JobName& job, base::RoundNumber round,
                              int64_t attempt) const {
  return root_ / job.str() / (std::to_string(round.value()) + "-" + std::to_string(attempt));
}

base::Path Spool::UpdatePath(const base::JobName& job, base::RoundNumber round, int64_t attempt,
                             const base::ClientName& client) const {
  return RoundFolder(job, round, attempt) / (client.str() + ".safetensors");
}

base::Status Spool::Prepare(const base::JobName& job, base::RoundNumber round, int64_t attempt,
                            uint64_t bytes) const {
  FL_RETURN_IF_ERROR(base::MakeDirectories(RoundFolder(job, round, attempt), 0700));
  FL_ASSIGN_OR_RETURN(const uint64_t free, base::FreeSpace(root_));
  if (free >= bytes) return base::OkStatus();
  return base::ResourceExhausted("the updates of round " + std::to_string(round.value()) +
                                     " need " + std::to_string(bytes) + " bytes in " +
                                     root_.string() + ", and " + std::to_string(free) + " are free",
                                 "free some disk space: the job goes on by itself");
}

base::Status Spool::KeepOnly(const base::JobName& job, base::RoundNumber round,
                             int64_t attempt) const {
  const base::Path kept = RoundFolder(job, round, attempt);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root_ / job.str(), error)) {
    if (entry.path() != kept) FL_RETURN_IF_ERROR(base::RemoveTree(entry.path()));
  }
  for (const auto& entry : std::filesystem::directory_iterator(kept, error)) {
    if (entry.path().extension() == ".tmp") FL_RETURN_IF_ERROR(base::RemoveFile(entry.path()));
  }
  return base::OkStatus();
}

base::Status Spool::RemoveJob(const base::JobName& job) const {
  return base::RemoveTree(root_ / job.str());
}

}  // namespace fl::aggregator
