#pragma once

/// Trained weights that wait to be delivered. What is written down beside them lets a restarted
/// agent send the same bytes without training again.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/digest.h"
#include "base/file.h"
#include "base/status.h"

namespace fl::agent {

struct FinishedUpdate {
  /// Digest of everything the weights follow from: the task but for its deadline, the dataset's
  /// address and the trainer's configuration.
  base::Digest cause;
  base::Digest digest;  ///< of the weights' file
  uint64_t size = 0;    ///< bytes of it
  int64_t samples = 0;
  int64_t steps = 0;
  std::map<std::string, double> metrics;

  friend bool operator==(const FinishedUpdate&, const FinishedUpdate&) = default;
};

/// Writes `update` down. The file is whole or absent after kill -9; a power cut may lose it, and
/// the task is then trained again.
base::Status WriteFinishedUpdate(const base::Path& path, const FinishedUpdate& update);

/// What was written down at `path`, where it is for `cause` and the file at `weights` still has the
/// size and digest it says; else nothing.
std::optional<FinishedUpdate> ReadFinishedUpdate(const base::Path& path, const base::Digest& cause,
                                                 const base::Path& weights);

}  // namespace fl::agent
