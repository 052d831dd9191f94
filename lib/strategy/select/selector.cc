#include "strategy/select/selector.h"

#include <algorithm>
#include <array>

#include "strategy/internal/policies.h"

namespace fl::strategy {

using base::InvalidArgument;
using base::Result;

namespace {

struct PolicyRow {
  std::string_view name;
  Result<std::unique_ptr<Selector>> (*make)(const SelectionSpec& spec, base::RandomSource& secure);
};

/// The table of policies, sorted by name.
constexpr std::array<PolicyRow, 2> kPolicies = {{
    {"Poisson", internal::MakePoisson},
    {"Random", internal::MakeRandom},
}};

}  // namespace

std::vector<std::string> KnownPolicies() {
  std::vector<std::string> names;
  for (const PolicyRow& row : kPolicies) names.emplace_back(row.name);
  return names;
}

Result<std::unique_ptr<Selector>> MakeSelector(const SelectionSpec& spec,
                                               base::RandomSource& secure) {
  std::string offered;
  for (const PolicyRow& row : kPolicies) {
    if (row.name == spec.policy) return row.make(spec, secure);
    offered += (offered.empty() ? "" : ", ") + std::string(row.name);
  }
  return InvalidArgument("unknown selection policy \"" + spec.policy + "\"; offered are " +
                         offered);
}

namespace internal {

Result<std::vector<base::ClientName>> SortedCandidates(const SelectionRequest& request) {
  std::vector<base::ClientName> candidates = request.candidates;
  std::sort(candidates.begin(), candidates.end());
  const auto twice = std::adjacent_find(candidates.begin(), candidates.end());
  if (twice != candidates.end()) {
    return InvalidArgument("client \"" + twice->str() + "\" is a candidate twice");
  }
  return candidates;
}

}  // namespace internal
}  // namespace fl::strategy
