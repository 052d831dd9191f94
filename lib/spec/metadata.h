#pragma once

/// What all kinds share. An absent optional field is std::nullopt (or an empty map, list or string
/// where that means the same); `defaults.h` fills what has a default.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/value.h"

namespace fl::spec {

inline constexpr std::string_view kApiVersion = "kubefl.dev/v1alpha1";

struct ObjectMeta {
  std::string name;  ///< RFC 1123 label, at most 63 characters
  std::optional<std::string> namespace_name;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};

/// Another object, or a Secret, of the same namespace.
struct NameRef {
  std::string name;
  friend bool operator==(const NameRef&, const NameRef&) = default;
};

/// A Kubernetes quantity such as "20Gi" or "500m"; an integer in YAML is taken too. Kept as text.
struct Quantity {
  std::string text;
  friend bool operator==(const Quantity&, const Quantity&) = default;
};

struct ResourceRequirements {
  std::map<std::string, Quantity> requests;
  std::map<std::string, Quantity> limits;
  friend bool operator==(const ResourceRequirements&, const ResourceRequirements&) = default;
};

}  // namespace fl::spec
