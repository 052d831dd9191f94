#include <algorithm>
#include <cstring>
#include <utility>

#include "base/digest.h"
#include "strategy/internal/policies.h"

namespace fl::strategy::internal {
namespace {

using base::ClientName;
using base::InvalidArgument;
using base::Result;

class RandomSelector final : public Selector {
 public:
  RandomSelector(const SelectionSpec& spec, base::RandomSource& secure)
      : clients_per_round_(static_cast<size_t>(spec.clients_per_round)),
        seed_(spec.seed),
        secure_(secure) {}

  Result<std::vector<ClientName>> Select(const SelectionRequest& request) const override {
    FL_ASSIGN_OR_RETURN(std::vector<ClientName> cohort, SortedCandidates(request));
    if (clients_per_round_ == 0 || cohort.size() <= clients_per_round_) return cohort;
    if (seed_) {
      uint64_t job = 0;
      std::memcpy(&job, base::Digest::Of(request.job.str()).bytes().data(), sizeof(job));
      base::SeededRandom seeded({*seed_, job, static_cast<uint64_t>(request.round.value()),
                                 static_cast<uint64_t>(request.retry)});
      Draw(seeded, cohort);
    } else {
      Draw(secure_, cohort);
    }
    return cohort;
  }

 private:
  /// The first steps of a Fisher–Yates shuffle choose the cohort.
  void Draw(base::RandomSource& random, std::vector<ClientName>& clients) const {
    for (size_t i = 0; i < clients_per_round_; ++i) {
      std::swap(clients[i], clients[i + random.Below(clients.size() - i)]);
    }
    clients.resize(clients_per_round_);
    std::sort(clients.begin(), clients.end());
  }

  const size_t clients_per_round_;
  const std::optional<uint64_t> seed_;
  base::RandomSource& secure_;
};

}  // namespace

Result<std::unique_ptr<Selector>> MakeRandom(const SelectionSpec& spec,
                                             base::RandomSource& secure) {
  if (spec.clients_per_round < 0) {
    return InvalidArgument("clientsPerRound is " + std::to_string(spec.clients_per_round) +
                           "; it must be 0 (all) or greater");
  }
  if (spec.sampling_rate || spec.population) {
    return InvalidArgument("samplingRate and population belong to policy Poisson, not to Random");
  }
  return std::unique_ptr<Selector>(std::make_unique<RandomSelector>(spec, secure));
}

}  // namespace fl::strategy::internal
