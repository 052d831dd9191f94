#include <cmath>

#include "spec/algorithms.h"
#include "spec/internal/rules.h"

namespace fl::spec::internal {
namespace {

const std::string kMasking = "spec.privacy.secureAggregation";
const std::string kNoise = "spec.privacy.differentialPrivacy";

/// floor(fraction * count), where the product of decimals such as 0.29 and 100 may not come out a
/// hair below the whole number that it is.
int64_t Share(const std::optional<Fraction>& fraction, int64_t count) {
  if (!fraction) return 0;
  return static_cast<int64_t>(std::floor(fraction->value() * static_cast<double>(count) + 1e-9));
}

/// Bonawitz et al. 2017: with more than half of the honest clients needed to unmask, no two
/// disjoint sets of survivors can be opened.
void CheckThreshold(const JobSpec& job, const SecureAggregation& masking, RuleReport& report) {
  if (!masking.threshold || !job.selection.clients_per_round) return;
  const int64_t clients = *job.selection.clients_per_round;
  const int64_t threshold = *masking.threshold;
  const std::string path = kMasking + ".threshold";
  const std::string not_this = ", not " + std::to_string(threshold);
  if (threshold > clients) {
    report(path, "must be at most clientsPerRound, " + std::to_string(clients) + not_this);
    return;
  }
  const int64_t smallest = (clients + Share(masking.corrupt_fraction, clients)) / 2 + 1;
  if (threshold < smallest) {
    report(path, "must be at least " + std::to_string(smallest) + " for " +
                     std::to_string(clients) +
                     " clients, more than half of them and of the corrupt ones" + not_this);
    return;
  }
  if (job.selection.quorum && *job.selection.quorum < threshold) {
    report(path, "must be at most selection.quorum, " + std::to_string(*job.selection.quorum) +
                     ", or a round that has its quorum could not be unmasked" + not_this);
  }
  const int64_t survivors = clients - Share(masking.drop_fraction, clients);
  if (masking.drop_fraction && threshold > survivors) {
    report(path, "must be at most the " + std::to_string(survivors) +
                     " clients that are left when dropFraction of them drop out" + not_this);
  }
}

void CheckSecureAggregation(const JobSpec& job, RuleReport& report) {
  constexpr int64_t kSmallestCohort = 3;  // of two clients, each could subtract its own update
  const SecureAggregation& masking = *job.privacy.secure_aggregation;
  const std::string name = job.aggregation.algorithm.value_or("FedAvg");
  const Algorithm* algorithm = FindAlgorithm(name);
  if (algorithm != nullptr && algorithm->needs_single_updates) {
    report("spec.aggregation.algorithm",
           name +
               " looks at single updates, which secure aggregation hides: take another "
               "algorithm, or leave secureAggregation out");
  }
  const std::optional<int64_t> cohort = SmallestCohort(job.selection);
  if (cohort && *cohort < kSmallestCohort && job.selection.policy != SelectionPolicy::kPoisson) {
    report(job.selection.quorum ? "spec.selection.quorum" : "spec.selection.clientsPerRound",
           "must be at least 3 under secure aggregation, not " + std::to_string(*cohort));
  }
  CheckThreshold(job, masking, report);

  const int64_t clients = job.selection.clients_per_round.value_or(1);
  const int64_t bits = masking.bits.value_or(32);
  int64_t largest = 0;
  if (bits >= 1 && bits <= 62 && clients >= 1 &&
      (__builtin_mul_overflow(clients, masking.max_weight.value_or(10'000), &largest) ||
       largest >= int64_t{1} << (bits - 1))) {
    report(kMasking + ".bits", "must be larger: the weights of " + std::to_string(clients) +
                                   " clients of up to " +
                                   std::to_string(masking.max_weight.value_or(10'000)) +
                                   " do not fit into " + std::to_string(bits) + " bits");
  }
}

void CheckDifferentialPrivacy(const JobSpec& job, RuleReport& report) {
  const DifferentialPrivacy& noise = *job.privacy.differential_privacy;
  const Selection& selection = job.selection;
  const std::string name = job.aggregation.algorithm.value_or("FedAvg");
  const Algorithm* algorithm = FindAlgorithm(name);
  if (algorithm != nullptr && algorithm->needs_step_counts) {
    report("spec.aggregation.algorithm",
           name +
               " needs each client's number of steps, which clients do not send under "
               "differential privacy: take FedAvg");
  }
  if (algorithm != nullptr && algorithm->needs_single_updates &&
      noise.mechanism != PrivacyMechanism::kLocal) {
    report("spec.aggregation.algorithm",
           name +
               " is no sum of clipped updates, so that the noise would promise nothing: take "
               "FedAvg, or mechanism Local");
  }
  if (selection.population &&
      noise.delta.value() * static_cast<double>(*selection.population) >= 1) {
    report(kNoise + ".delta", "must be less than 1/population, 1/" +
                                  std::to_string(*selection.population) + ", not \"" +
                                  noise.delta.text() + "\"");
  }
  if (noise.mechanism == PrivacyMechanism::kDistributed) {
    if (!job.privacy.secure_aggregation) {
      report(
          kNoise + ".mechanism",
          "Distributed needs secureAggregation: one client's share of the noise protects no one");
    }
    if (noise.accountant == PrivacyAccountant::kPld) {
      report(kNoise + ".accountant",
             "must be RDP for mechanism Distributed, whose noise is not Gaussian");
    }
  }
  if (selection.policy != SelectionPolicy::kPoisson && selection.population && selection.seed) {
    report("spec.selection.seed",
           "must be left out where differential privacy counts on sampling from a population: a "
           "cohort that can be guessed amplifies no privacy");
  }
  if (job.convergence && !job.evaluation.test_dataset) {
    report("spec.convergence",
           "must have an evaluation.testDataset: under differential privacy clients send no "
           "metrics");
  }
}

}  // namespace

void CheckPrivacyRules(const JobSpec& job, RuleReport report) {
  if (job.privacy.secure_aggregation) CheckSecureAggregation(job, report);
  if (job.privacy.differential_privacy) CheckDifferentialPrivacy(job, report);
}

}  // namespace fl::spec::internal
