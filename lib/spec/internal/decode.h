#pragma once

/// Trees to objects and back, by the table of fields.h.

#include "spec/problem.h"
#include "spec/types.h"

namespace fl::spec::internal {

/// Reads `tree`, whose kind is known, into `object`: types, unknown fields, missing fields. Bounds
/// and rules are for CheckFields and Validate. Problems have the path, with `path` in front.
template <typename T>
void Decode(const Value& tree, const std::string& path, T& object, Problems& problems);

/// The fields of `object` as a map: what is set, without apiVersion and kind.
template <typename T>
Value Encode(const T& object);

/// Holds each field of `object` to its rule.
template <typename T>
void CheckFields(const T& object, Problems& problems);

extern template void Decode(const Value&, const std::string&, FederatedModel&, Problems&);
extern template void Decode(const Value&, const std::string&, FederatedClient&, Problems&);
extern template void Decode(const Value&, const std::string&, FederatedLearningJob&, Problems&);
extern template Value Encode(const FederatedModel&);
extern template Value Encode(const FederatedClient&);
extern template Value Encode(const FederatedLearningJob&);
extern template void CheckFields(const FederatedModel&, Problems&);
extern template void CheckFields(const FederatedClient&, Problems&);
extern template void CheckFields(const FederatedLearningJob&, Problems&);

}  // namespace fl::spec::internal
