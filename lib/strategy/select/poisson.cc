#include "strategy/internal/policies.h"

namespace fl::strategy::internal {
namespace {

using base::ClientName;
using base::FailedPrecondition;
using base::InvalidArgument;
using base::Result;

class PoissonSelector final : public Selector {
 public:
  PoissonSelector(const SelectionSpec& spec, base::RandomSource& secure)
      : sampling_rate_(*spec.sampling_rate), population_(spec.population), secure_(secure) {}

  Result<std::vector<ClientName>> Select(const SelectionRequest& request) const override {
    FL_ASSIGN_OR_RETURN(const std::vector<ClientName> candidates, SortedCandidates(request));
    if (population_ && candidates.size() > static_cast<size_t>(*population_)) {
      return FailedPrecondition(std::to_string(candidates.size()) +
                                    " clients are candidates, more than the population of " +
                                    std::to_string(*population_) +
                                    " that the privacy promise is about",
                                "raise selection.population");
    }
    std::vector<ClientName> cohort;
    for (const ClientName& client : candidates) {
      if (secure_.Unit() < sampling_rate_) cohort.push_back(client);
    }
    return cohort;
  }

 private:
  const double sampling_rate_;
  const std::optional<int64_t> population_;
  base::RandomSource& secure_;
};

}  // namespace

Result<std::unique_ptr<Selector>> MakePoisson(const SelectionSpec& spec,
                                              base::RandomSource& secure) {
  if (!spec.sampling_rate) return InvalidArgument("policy Poisson needs samplingRate");
  // Written so that NaN fails too.
  if (!(*spec.sampling_rate > 0 && *spec.sampling_rate <= 1)) {
    return InvalidArgument("samplingRate is " + std::to_string(*spec.sampling_rate) +
                           "; it must be greater than 0 and at most 1");
  }
  if (spec.population && *spec.population < 1) {
    return InvalidArgument("population is " + std::to_string(*spec.population) +
                           "; it must be 1 or greater");
  }
  if (spec.seed) {
    return InvalidArgument(
        "policy Poisson takes no seed: a cohort that can be foretold amplifies no privacy");
  }
  if (spec.clients_per_round != 0) {
    return InvalidArgument("clientsPerRound belongs to policy Random, not to Poisson",
                           "the expected cohort is samplingRate times the population");
  }
  return std::unique_ptr<Selector>(std::make_unique<PoissonSelector>(spec, secure));
}

}  // namespace fl::strategy::internal
