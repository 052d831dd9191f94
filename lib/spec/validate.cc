#include "spec/validate.h"

#include "spec/internal/decode.h"
#include "spec/internal/names.h"
#include "spec/internal/rules.h"

namespace fl::spec {

Problems Validate(const FederatedModel& model) {
  Problems problems;
  internal::CheckFields(model, problems);
  internal::CheckModelRules(model, internal::RuleReport(problems));
  return problems;
}

Problems Validate(const FederatedClient& client, AgentKeys keys) {
  Problems problems;
  internal::CheckFields(client, problems);
  internal::CheckClientRules(client, keys, internal::RuleReport(problems));
  return problems;
}

Problems Validate(const FederatedLearningJob& job) {
  Problems problems;
  internal::CheckFields(job, problems);
  internal::RuleReport report(problems);
  internal::CheckJobRules(job.spec, report);
  internal::CheckAggregationRules(job.spec, report);
  internal::CheckPrivacyRules(job.spec, report);
  return problems;
}

Problems Validate(const Object& object) {
  return std::visit([](const auto& each) { return Validate(each); }, object);
}

base::Status CheckName(std::string_view name, std::string_view what) {
  const std::string problem = internal::CheckDnsLabel(name);
  if (problem.empty()) return base::OkStatus();
  return base::InvalidArgument(std::string(what) + " " + problem);
}

}  // namespace fl::spec
