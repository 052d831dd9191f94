#pragma once

/// The rules between the fields of one object.

#include <string>
#include <utility>

#include "spec/problem.h"
#include "spec/types.h"
#include "spec/validate.h"

namespace fl::spec::internal {

class RuleReport {
 public:
  explicit RuleReport(Problems& problems) : problems_(problems) {}
  void operator()(std::string path, std::string message) {
    problems_.push_back({"", 0, std::move(path), std::move(message)});
  }

 private:
  Problems& problems_;
};

void CheckModelRules(const FederatedModel& model, RuleReport report);
void CheckClientRules(const FederatedClient& client, AgentKeys keys, RuleReport report);
/// All but the two below.
void CheckJobRules(const JobSpec& job, RuleReport report);
/// Algorithm, its parameters, and how many clients it needs.
void CheckAggregationRules(const JobSpec& job, RuleReport report);
/// Secure aggregation and differential privacy, and what they exclude.
void CheckPrivacyRules(const JobSpec& job, RuleReport report);

/// The updates that a round is sure to have: its quorum, else clientsPerRound, else unknown.
std::optional<int64_t> SmallestCohort(const Selection& selection);

}  // namespace fl::spec::internal
