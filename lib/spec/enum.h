#pragma once

/// Enumerations whose values have the names that stand in YAML and JSON.

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace fl::spec {

/// Specialised beside each enumeration: `kNames[i]` is the name of the value `i`.
template <typename E>
struct EnumTable;

template <typename E>
concept NamedEnum = requires { EnumTable<E>::kNames; };

/// The name of `value` in YAML and JSON, e.g. "Random".
template <NamedEnum E>
constexpr std::string_view Name(E value) {
  return EnumTable<E>::kNames.at(static_cast<size_t>(value));
}

/// The value with that name; names are case-sensitive, as in Kubernetes.
template <NamedEnum E>
constexpr std::optional<E> EnumFromName(std::string_view name) {
  for (size_t i = 0; i < EnumTable<E>::kNames.size(); ++i) {
    if (EnumTable<E>::kNames[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace fl::spec
