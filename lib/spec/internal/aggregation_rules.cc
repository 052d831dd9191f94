#include <cmath>

#include "spec/algorithms.h"
#include "spec/internal/path.h"
#include "spec/internal/rules.h"
#include "spec/internal/suggest.h"

namespace fl::spec::internal {
namespace {

std::string Bound(double value) {
  std::string text = Value(value).ToJson();
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

/// What is wrong with the value of a parameter, or an empty string.
std::string CheckParameter(const AlgorithmParameter& parameter, const std::string& text) {
  if (parameter.boolean) {
    return text == "true" || text == "false" ? ""
                                             : "must be \"true\" or \"false\", not " + Quote(text);
  }
  const base::Result<Fraction> fraction = Fraction::Parse(text);
  if (!fraction.ok()) return fraction.status().message();
  const double value = fraction->value();
  std::string wanted;
  if (value < parameter.minimum || (value == parameter.minimum && !parameter.minimum_allowed)) {
    wanted = (parameter.minimum_allowed ? "at least " : "greater than ") + Bound(parameter.minimum);
  } else if (value > parameter.maximum ||
             (value == parameter.maximum && !parameter.maximum_allowed)) {
    wanted = (parameter.maximum_allowed ? "at most " : "less than ") + Bound(parameter.maximum);
  } else if (parameter.integer && std::trunc(value) != value) {
    wanted = "a whole number";
  }
  return wanted.empty() ? "" : "must be " + wanted + ", not " + Quote(text);
}

const AlgorithmParameter* FindParameter(const Algorithm& algorithm, std::string_view name) {
  for (const AlgorithmParameter& each : algorithm.parameters) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

/// A parameter that is a whole number and was set right.
std::optional<int64_t> WholeParameter(const Aggregation& aggregation, const std::string& name) {
  const auto found = aggregation.parameters.find(name);
  if (found == aggregation.parameters.end()) return std::nullopt;
  const base::Result<Fraction> fraction = Fraction::Parse(found->second);
  if (!fraction.ok() || !(fraction->value() >= 0 && fraction->value() <= 1e6)) return std::nullopt;
  return static_cast<int64_t>(fraction->value());
}

/// Blanchard et al. 2017 (Krum: n >= 2f + 3) and El Mhamdi et al. 2018 (Bulyan: n >= 4f + 3).
void CheckCohort(const JobSpec& job, const std::string& algorithm, RuleReport& report) {
  const std::optional<int64_t> cohort = SmallestCohort(job.selection);
  const std::optional<int64_t> byzantine = WholeParameter(job.aggregation, "byzantine");
  if (!cohort || !byzantine) return;
  const int64_t needed = (algorithm == "Bulyan" ? 4 : 2) * *byzantine + 3;
  if (*cohort < needed) {
    report("spec.aggregation.parameters.byzantine",
           algorithm + " needs at least " + std::to_string(needed) + " updates to bear " +
               std::to_string(*byzantine) + " Byzantine clients, but a round may have " +
               std::to_string(*cohort) + ": raise selection.quorum or lower byzantine");
  }
  const std::optional<int64_t> keep = WholeParameter(job.aggregation, "keep");
  if (keep && *keep > *cohort - *byzantine) {
    report("spec.aggregation.parameters.keep",
           "must be at most the updates less the Byzantine ones, " +
               std::to_string(*cohort - *byzantine) + ", not " + std::to_string(*keep));
  }
}

}  // namespace

void CheckAggregationRules(const JobSpec& job, RuleReport report) {
  const Aggregation& aggregation = job.aggregation;
  const std::string name = aggregation.algorithm.value_or("FedAvg");
  const Algorithm* algorithm = FindAlgorithm(name);
  if (algorithm == nullptr) return;  // said where the field is checked

  std::vector<std::string_view> known;
  for (const AlgorithmParameter& each : algorithm->parameters) known.push_back(each.name);
  for (const auto& [key, text] : aggregation.parameters) {
    const std::string path = JoinKey("spec.aggregation.parameters", key);
    const AlgorithmParameter* parameter = FindParameter(*algorithm, key);
    if (parameter == nullptr) {
      report(path, name + " has no such parameter, only " + OneOf(known) + DidYouMean(key, known));
    } else if (std::string problem = CheckParameter(*parameter, text); !problem.empty()) {
      report(path, std::move(problem));
    }
  }
  for (const AlgorithmParameter& each : algorithm->parameters) {
    if (each.required && !aggregation.parameters.contains(std::string(each.name))) {
      report(JoinKey("spec.aggregation.parameters", each.name), "is required for " + name);
    }
  }
  if (algorithm->needs_root_dataset && !aggregation.root_dataset) {
    report("spec.aggregation.rootDataset", "is required for " + name);
  } else if (!algorithm->needs_root_dataset && aggregation.root_dataset) {
    report("spec.aggregation.rootDataset", "must be left out for " + name);
  }
  CheckCohort(job, name, report);
}

}  // namespace fl::spec::internal
