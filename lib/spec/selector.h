#pragma once

/// Label selectors with Kubernetes' meaning.

#include <map>
#include <string>
#include <vector>

#include "spec/enum.h"

namespace fl::spec {

using Labels = std::map<std::string, std::string>;

enum class SelectorOperator { kIn, kNotIn, kExists, kDoesNotExist };
template <>
struct EnumTable<SelectorOperator> {
  static constexpr std::array<std::string_view, 4> kNames{"In", "NotIn", "Exists", "DoesNotExist"};
};

struct SelectorRequirement {
  std::string key;
  SelectorOperator op = SelectorOperator::kIn;
  std::vector<std::string> values;
  friend bool operator==(const SelectorRequirement&, const SelectorRequirement&) = default;
};

struct LabelSelector {
  Labels match_labels;
  std::vector<SelectorRequirement> match_expressions;

  /// True where all requirements hold; an empty selector matches everything. As in Kubernetes,
  /// NotIn holds too where the label is absent.
  bool Matches(const Labels& labels) const;

  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

}  // namespace fl::spec
