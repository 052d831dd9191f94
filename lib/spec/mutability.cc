#include "spec/internal/mutability.h"

#include <algorithm>
#include <array>

#include "spec/defaults.h"
#include "spec/internal/path.h"
#include "spec/json.h"
#include "spec/validate.h"

namespace fl::spec {
namespace internal {
namespace {

constexpr std::array kRules{
    UpdateRule{FederatedLearningJob::kKind, "suspend", Change::kFree},
    UpdateRule{FederatedLearningJob::kKind, "aborted", Change::kOnlyToTrue},
    UpdateRule{FederatedLearningJob::kKind, "attempt", Change::kOnlyUp},
    UpdateRule{FederatedLearningJob::kKind, "ttlSecondsAfterFinished", Change::kFree},
    UpdateRule{FederatedLearningJob::kKind, "roundPolicy", Change::kFree},
    UpdateRule{FederatedLearningJob::kKind, "rounds", Change::kOnlyUp},
    UpdateRule{FederatedModel::kKind, "registry", Change::kNone},
    UpdateRule{FederatedModel::kKind, "initial", Change::kNone},
    UpdateRule{FederatedClient::kKind, "type", Change::kNone},
};

}  // namespace

Change AllowedChange(std::string_view kind, std::string_view field) {
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](const UpdateRule& rule) {
    return rule.kind == kind && rule.field == field;
  });
  if (found != kRules.end()) return found->change;
  return kind == FederatedLearningJob::kKind ? Change::kNone : Change::kFree;
}

}  // namespace internal

namespace {

using internal::Change;

std::string Show(const Value* value) {
  if (value == nullptr) return "left out";
  constexpr size_t kLongest = 80;
  std::string text = value->ToJson();
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "…";
  return text;
}

/// Reports every place where the two differ.
void ReportDifferences(const Value* before, const Value* after, const std::string& path,
                       Problems& problems) {
  if (before != nullptr && after != nullptr) {
    if (*before == *after) return;
    if (before->is_map() && after->is_map()) {
      const Value::Map& old_map = *before->As<Value::Map>();
      for (const auto& [key, member] : old_map) {
        ReportDifferences(&member, after->Find(key), internal::JoinKey(path, key), problems);
      }
      for (const auto& [key, member] : *after->As<Value::Map>()) {
        if (!old_map.contains(key)) {
          ReportDifferences(nullptr, &member, internal::JoinKey(path, key), problems);
        }
      }
      return;
    }
  }
  problems.push_back({"", 0, path,
                      "may not be changed from " + Show(before) + " to " + Show(after) +
                          ": make a new object with another name"});
}

void CheckChange(Change allowed, const Value* before, const Value* after, const std::string& path,
                 Problems& problems) {
  const auto number = [](const Value* value) {
    const int64_t* integer = value == nullptr ? nullptr : value->As<int64_t>();
    return integer == nullptr ? 0 : *integer;
  };
  const auto flag = [](const Value* value) { return value != nullptr && *value == Value(true); };
  switch (allowed) {
    case Change::kFree:
      return;
    case Change::kNone:
      ReportDifferences(before, after, path, problems);
      return;
    case Change::kOnlyUp:
      if (number(after) < number(before)) {
        problems.push_back({"", 0, path,
                            "may only be raised: it is " + std::to_string(number(before)) +
                                ", not to become " + std::to_string(number(after))});
      }
      return;
    case Change::kOnlyToTrue:
      if (flag(before) && !flag(after)) {
        problems.push_back({"", 0, path, "may not be taken back: submit a new job"});
      }
      return;
  }
}

}  // namespace

Problems ValidateUpdate(const Object& before, const Object& after) {
  Problems problems;
  if (KindOf(before) != KindOf(after)) {
    problems.push_back({"", 0, "kind",
                        "may not be changed from " + std::string(KindOf(before)) + " to " +
                            std::string(KindOf(after))});
    return problems;
  }
  const ObjectMeta& old_name = MetadataOf(before);
  const ObjectMeta& new_name = MetadataOf(after);
  if (old_name.name != new_name.name || old_name.namespace_name != new_name.namespace_name) {
    problems.push_back({"", 0, "metadata.name", "is another object's"});
    return problems;
  }
  Object old_object = before;
  Object new_object = after;
  ApplyDefaults(old_object);
  ApplyDefaults(new_object);
  const Value old_tree = ToValue(old_object);
  const Value new_tree = ToValue(new_object);
  const Value& old_spec = *old_tree.Find("spec");
  const Value& new_spec = *new_tree.Find("spec");
  Value::Map fields = *old_spec.As<Value::Map>();
  fields.insert(new_spec.As<Value::Map>()->begin(), new_spec.As<Value::Map>()->end());
  for (const auto& [name, unused] : fields) {
    CheckChange(internal::AllowedChange(KindOf(before), name), old_spec.Find(name),
                new_spec.Find(name), internal::JoinKey("spec", name), problems);
  }
  return problems;
}

}  // namespace fl::spec
