#include "spec/selector.h"

#include <algorithm>

namespace fl::spec {
namespace {

bool Holds(const SelectorRequirement& requirement, const Labels& labels) {
  const auto label = labels.find(requirement.key);
  const bool there = label != labels.end();
  const bool listed = there && std::find(requirement.values.begin(), requirement.values.end(),
                                         label->second) != requirement.values.end();
  switch (requirement.op) {
    case SelectorOperator::kIn:
      return listed;
    case SelectorOperator::kNotIn:
      return !listed;
    case SelectorOperator::kExists:
      return there;
    case SelectorOperator::kDoesNotExist:
      return !there;
  }
  return false;
}

}  // namespace

bool LabelSelector::Matches(const Labels& labels) const {
  const auto has = [&labels](const Labels::value_type& wanted) {
    const auto label = labels.find(wanted.first);
    return label != labels.end() && label->second == wanted.second;
  };
  const auto holds = [&labels](const SelectorRequirement& each) { return Holds(each, labels); };
  return std::all_of(match_labels.begin(), match_labels.end(), has) &&
         std::all_of(match_expressions.begin(), match_expressions.end(), holds);
}

}  // namespace fl::spec
