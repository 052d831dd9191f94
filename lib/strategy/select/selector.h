#pragma once

/// Who takes part in a round: one interface, one explicit table of policies.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/random.h"
#include "base/status.h"

namespace fl::strategy {

/// A policy as a job names it.
struct SelectionSpec {
  std::string policy = "Random";
  int64_t clients_per_round = 0;        ///< Random: cohort size; 0 takes all
  std::optional<uint64_t> seed;         ///< Random: the same cohorts again; none: secure randomness
  std::optional<double> sampling_rate;  ///< Poisson: in (0, 1]
  std::optional<int64_t> population;    ///< Poisson: clients that the privacy promise is about
};

/// The round that a cohort is drawn for.
struct SelectionRequest {
  base::JobName job;
  base::RoundNumber round;
  /// How often this round was tried before, so that a retry draws other clients.
  int64_t retry = 0;
  /// Names of the clients to choose from, each once, in any order.
  std::vector<base::ClientName> candidates;
};

/// Thread-safe.
class Selector {
 public:
  virtual ~Selector() = default;
  /// The cohort, sorted by name. May be smaller than asked for (also empty); the quorum decides
  /// whether that is enough. kInvalidArgument for a candidate given twice; Poisson:
  /// kFailedPrecondition for more candidates than the population.
  virtual base::Result<std::vector<base::ClientName>> Select(
      const SelectionRequest& request) const = 0;
};

/// Names of all policies offered, sorted.
std::vector<std::string> KnownPolicies();

/// - Random: clientsPerRound clients, all cohorts equally likely. With a seed the cohort is a
///   function of (seed, job, round, retry, candidates' names); without one it is drawn from
///   `secure`.
/// - Poisson: each candidate by itself with probability samplingRate, from `secure` only: the
///   sampling that amplification by subsampling is proved for (Mironov et al. 2019, section 2.3),
///   which a known seed would void.
///
/// kInvalidArgument for an unknown policy (naming those offered), a setting that the policy does
/// not take, or one that is out of range.
base::Result<std::unique_ptr<Selector>> MakeSelector(
    const SelectionSpec& spec, base::RandomSource& secure = base::RandomSource::Secure());

}  // namespace fl::strategy
