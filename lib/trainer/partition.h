#pragma once

/// Splits one labelled dataset among N clients. Pure; the same on every machine.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fl::trainer {

/// How rows are dealt out.
enum class PartitionKind {
  kIid,        ///< shuffled and dealt in equal parts
  kShards,     ///< sorted by label, cut into parts × K shards, K shards to each (McMahan et al.
               ///< 2017, section 3, has K = 2)
  kDirichlet,  ///< each class is split in proportions drawn from Dirichlet(A) (Hsu et al. 2019):
               ///< A → ∞ is IID, A → 0 gives each class to one client
};

/// How to split, e.g. of `--partition`.
struct PartitionScheme {
  PartitionKind kind = PartitionKind::kIid;
  int64_t shards = 2;  ///< K, for kShards
  double alpha = 0.5;  ///< A, for kDirichlet

  /// "iid", "shards=K" or "dirichlet=A". kInvalidArgument.
  static base::Result<PartitionScheme> Parse(std::string_view text);
  std::string ToString() const;
};

/// One part of a split.
struct Partition {
  PartitionScheme scheme;
  int64_t parts = 1;  ///< N ≥ 1
  int64_t index = 0;  ///< which one, in [0, parts)
  uint64_t seed = 0;

  friend bool operator==(const Partition&, const Partition&);
};

/// The rows of every part, each ascending: a split of [0, labels.size()) in which every row is in
/// one part. Sizes of kIid differ by one at most, shards' too. kDirichlet draws again (100 times at
/// most) until no part has fewer than min(10, rows/(2*parts)) rows. kInvalidArgument where there
/// are fewer rows than parts (kShards: than shards).
base::Result<std::vector<std::vector<int64_t>>> SplitRows(const PartitionScheme& scheme,
                                                          int64_t parts, uint64_t seed,
                                                          std::span<const int32_t> labels);
/// The rows of one part of that split.
base::Result<std::vector<int64_t>> RowsOfPart(const Partition& partition,
                                              std::span<const int32_t> labels);

}  // namespace fl::trainer
