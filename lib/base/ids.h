#pragma once

/// Ids are types, so that a client's name is never taken for a job's. Values compare, hash and
/// print as the string or number inside.

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>

namespace fl::base {

template <typename Tag>
class Name {
 public:
  Name() = default;
  explicit Name(std::string value) : value_(std::move(value)) {}
  const std::string& str() const { return value_; }
  bool empty() const { return value_.empty(); }
  auto operator<=>(const Name&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Name& name) {
    return out << name.value_;
  }

 private:
  std::string value_;
};

template <typename Tag>
class Number {
 public:
  constexpr Number() = default;
  explicit constexpr Number(int64_t value) : value_(value) {}
  constexpr int64_t value() const { return value_; }
  constexpr Number Next() const { return Number(value_ + 1); }
  auto operator<=>(const Number&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Number& number) {
    return out << number.value_;
  }

 private:
  int64_t value_ = 0;
};

using JobName = Name<struct JobTag>;
using ModelName = Name<struct ModelTag>;
using ClientName = Name<struct ClientTag>;
using SessionToken = Name<struct SessionTag>;

/// Rounds of a job count from 1.
using RoundNumber = Number<struct RoundTag>;
/// Versions of a model are dense from 0, the initial model.
using VersionNumber = Number<struct VersionTag>;

}  // namespace fl::base

template <typename Tag>
struct std::hash<fl::base::Name<Tag>> {
  size_t operator()(const fl::base::Name<Tag>& name) const {
    return std::hash<std::string>()(name.str());
  }
};
template <typename Tag>
struct std::hash<fl::base::Number<Tag>> {
  size_t operator()(const fl::base::Number<Tag>& number) const {
    return std::hash<int64_t>()(number.value());
  }
};
