#pragma once

/// The kinds as JSON, as they travel between the programs, and as YAML for people.

#include <string>
#include <string_view>

#include "base/status.h"
#include "spec/types.h"

namespace fl::spec {

/// The tree of an object: apiVersion, kind, metadata, spec; only what is set.
Value ToValue(const FederatedModel& model);
Value ToValue(const FederatedClient& client);
Value ToValue(const FederatedLearningJob& job);
Value ToValue(const Object& object);

/// Canonical JSON: compact, keys sorted, only what is set; equal objects give equal bytes.
std::string ToJson(const FederatedModel& model);
std::string ToJson(const FederatedClient& client);
std::string ToJson(const FederatedLearningJob& job);
std::string ToJson(const Object& object);

/// One YAML document, without "---".
std::string ToYaml(const Object& object);

/// Reads one object with the same checks as ParseYaml. kInvalidArgument with all problems, or where
/// it is of another kind. T is FederatedModel, FederatedClient, FederatedLearningJob or Object.
template <typename T>
base::Result<T> FromJson(std::string_view text);
template <>
base::Result<FederatedModel> FromJson(std::string_view text);
template <>
base::Result<FederatedClient> FromJson(std::string_view text);
template <>
base::Result<FederatedLearningJob> FromJson(std::string_view text);
template <>
base::Result<Object> FromJson(std::string_view text);

/// Reads any JSON text (RFC 8259) within the limits of parse.h; duplicate keys are refused, numbers
/// without point and exponent stay integers. kInvalidArgument.
base::Result<Value> ParseJson(std::string_view text);

}  // namespace fl::spec
