#include "trainer/partition.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>

#include "base/random.h"
#include "base/text.h"

namespace fl::trainer {
namespace {

using base::InvalidArgument;
using base::Result;
using Rows = std::vector<int64_t>;

constexpr int64_t kMaxShards = 1'000'000;
constexpr double kMaxAlpha = 1e9;

template <typename T>
bool ParseNumber(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

Rows AllRows(size_t count) {
  Rows rows(count);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// Where piece `index` of `count` starts in `total` items, cut as evenly as can be.
int64_t CutAt(int64_t total, int64_t count, int64_t index) {
  // The first `total % count` pieces have one item more.
  return index * (total / count) + std::min(index, total % count);
}

std::vector<Rows> SplitIid(int64_t parts, uint64_t seed, size_t count) {
  base::SeededRandom random({seed});
  Rows rows = AllRows(count);
  random.Shuffle(rows);
  std::vector<Rows> split;
  const int64_t total = static_cast<int64_t>(count);
  for (int64_t part = 0; part < parts; ++part) {
    split.emplace_back(rows.begin() + CutAt(total, parts, part),
                       rows.begin() + CutAt(total, parts, part + 1));
  }
  return split;
}

std::vector<Rows> SplitShards(int64_t parts, int64_t shards_each, uint64_t seed,
                              std::span<const int32_t> labels) {
  Rows rows = AllRows(labels.size());
  std::stable_sort(rows.begin(), rows.end(), [&labels](int64_t a, int64_t b) {
    return labels[static_cast<size_t>(a)] < labels[static_cast<size_t>(b)];
  });
  const int64_t total = static_cast<int64_t>(labels.size());
  const int64_t shards = parts * shards_each;
  Rows order = AllRows(static_cast<size_t>(shards));
  base::SeededRandom random({seed});
  random.Shuffle(order);
  std::vector<Rows> split(static_cast<size_t>(parts));
  for (int64_t i = 0; i < shards; ++i) {
    const int64_t shard = order[static_cast<size_t>(i)];
    Rows& part = split[static_cast<size_t>(i / shards_each)];
    part.insert(part.end(), rows.begin() + CutAt(total, shards, shard),
                rows.begin() + CutAt(total, shards, shard + 1));
  }
  return split;
}

/// Logarithm of a Gamma(alpha, 1) variate (Marsaglia and Tsang 2000). In logarithms, because for
/// small alpha the variate itself underflows.
double LogGamma(double alpha, base::SeededRandom& random) {
  double boost = 0;
  if (alpha < 1) {  // G(alpha) = G(alpha + 1) * U^(1/alpha)
    boost = std::log(1 - random.Unit()) / alpha;
    alpha += 1;
  }
  const double d = alpha - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.Normal();
    const double v = std::pow(1 + c * x, 3);
    if (!(v > 0)) continue;
    if (std::log(1 - random.Unit()) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return std::log(d * v) + boost;
    }
  }
}

std::vector<double> Dirichlet(double alpha, int64_t parts, base::SeededRandom& random) {
  std::vector<double> shares;
  for (int64_t i = 0; i < parts; ++i) shares.push_back(LogGamma(alpha, random));
  const double largest = *std::max_element(shares.begin(), shares.end());
  double sum = 0;
  for (double& share : shares) sum += share = std::exp(share - largest);
  for (double& share : shares) share /= sum;
  return shares;
}

std::vector<Rows> DrawDirichlet(int64_t parts, double alpha, base::SeededRandom& random,
                                std::map<int32_t, Rows> rows_of_class) {
  std::vector<Rows> split(static_cast<size_t>(parts));
  for (auto& [label, rows] : rows_of_class) {
    random.Shuffle(rows);
    const std::vector<double> shares = Dirichlet(alpha, parts, random);
    const double count = static_cast<double>(rows.size());
    double reached = 0;
    size_t begin = 0;
    for (size_t part = 0; part < split.size(); ++part) {
      reached += shares[part];
      const size_t end =
          part + 1 == split.size()
              ? rows.size()
              : std::clamp(static_cast<size_t>(std::llround(reached * count)), begin, rows.size());
      split[part].insert(split[part].end(), rows.begin() + static_cast<int64_t>(begin),
                         rows.begin() + static_cast<int64_t>(end));
      begin = end;
    }
  }
  return split;
}

std::vector<Rows> SplitDirichlet(int64_t parts, double alpha, uint64_t seed,
                                 std::span<const int32_t> labels) {
  constexpr uint64_t kMaxDraws = 100;
  std::map<int32_t, Rows> rows_of_class;
  for (size_t row = 0; row < labels.size(); ++row) {
    rows_of_class[labels[row]].push_back(static_cast<int64_t>(row));
  }
  const size_t enough = std::min<size_t>(10, labels.size() / (2 * static_cast<size_t>(parts)));
  const auto by_size = [](const Rows& a, const Rows& b) { return a.size() < b.size(); };
  std::vector<Rows> best;
  size_t best_smallest = 0;
  for (uint64_t draw = 0; draw < kMaxDraws; ++draw) {
    base::SeededRandom random({seed, draw});
    std::vector<Rows> split = DrawDirichlet(parts, alpha, random, rows_of_class);
    const size_t smallest = std::min_element(split.begin(), split.end(), by_size)->size();
    if (best.empty() || smallest > best_smallest) {
      best_smallest = smallest;
      best = std::move(split);
    }
    if (best_smallest >= enough) break;
  }
  return best;
}

}  // namespace

Result<PartitionScheme> PartitionScheme::Parse(std::string_view text) {
  PartitionScheme scheme;
  if (text == "iid") return scheme;
  if (text.starts_with("shards=")) {
    scheme.kind = PartitionKind::kShards;
    if (ParseNumber(text.substr(7), scheme.shards) && scheme.shards >= 1 &&
        scheme.shards <= kMaxShards) {
      return scheme;
    }
  } else if (text.starts_with("dirichlet=")) {
    scheme.kind = PartitionKind::kDirichlet;
    if (ParseNumber(text.substr(10), scheme.alpha) && scheme.alpha > 0 &&
        scheme.alpha <= kMaxAlpha) {
      return scheme;
    }
  }
  return InvalidArgument("partition \"" + std::string(text) + "\" is not known",
                         "use iid, shards=K with K from 1, or dirichlet=A with A > 0");
}

std::string PartitionScheme::ToString() const {
  switch (kind) {
    case PartitionKind::kIid:
      return "iid";
    case PartitionKind::kShards:
      return "shards=" + std::to_string(shards);
    case PartitionKind::kDirichlet:
      break;
  }
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), alpha).ptr;
  return "dirichlet=" + std::string(buffer.data(), end);
}

bool operator==(const Partition& a, const Partition& b) {
  return a.scheme.ToString() == b.scheme.ToString() && a.parts == b.parts && a.index == b.index &&
         a.seed == b.seed;
}

Result<std::vector<Rows>> SplitRows(const PartitionScheme& scheme, int64_t parts, uint64_t seed,
                                    std::span<const int32_t> labels) {
  if (parts < 1) return InvalidArgument("a split needs at least one part");
  const int64_t total = static_cast<int64_t>(labels.size());
  const int64_t shards_each = scheme.kind == PartitionKind::kShards ? scheme.shards : 1;
  if (shards_each > total / parts) {
    return InvalidArgument(
        "a dataset of " + base::Count(total, "row") + " cannot be split into " +
            base::Count(parts, "part") +
            (shards_each > 1 ? " of " + std::to_string(shards_each) + " shards" : ""),
        "use fewer clients");
  }
  std::vector<Rows> split;
  switch (scheme.kind) {
    case PartitionKind::kIid:
      split = SplitIid(parts, seed, labels.size());
      break;
    case PartitionKind::kShards:
      split = SplitShards(parts, scheme.shards, seed, labels);
      break;
    case PartitionKind::kDirichlet:
      split = SplitDirichlet(parts, scheme.alpha, seed, labels);
      break;
  }
  for (Rows& rows : split) std::sort(rows.begin(), rows.end());
  return split;
}

Result<Rows> RowsOfPart(const Partition& partition, std::span<const int32_t> labels) {
  if (partition.index < 0 || partition.index >= partition.parts) {
    return InvalidArgument("part " + std::to_string(partition.index) + " of " +
                           std::to_string(partition.parts) + " does not exist");
  }
  FL_ASSIGN_OR_RETURN(std::vector<Rows> split,
                      SplitRows(partition.scheme, partition.parts, partition.seed, labels));
  return std::move(split[static_cast<size_t>(partition.index)]);
}

}  // namespace fl::trainer
