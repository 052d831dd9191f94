#pragma once

/// Reading JSON without exceptions.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/digest.h"
#include "base/status.h"

namespace fl::registry::internal {

/// Parses `text`. kDataLoss, with `where`, for what is not JSON.
base::Result<nlohmann::json> ParseJson(std::string_view text, std::string_view where);

/// Compact, with bytes that are not UTF-8 replaced (never throws).
std::string DumpJson(const nlohmann::json& value);

/// Reads the members of an object; the first thing that is missing or of another type makes
/// `status` kDataLoss, and reads after that give empty values. `where` leads the message.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string where);
  JsonFields(nlohmann::json&&, std::string) = delete;

  bool Has(std::string_view key) const;
  std::string String(std::string_view key);
  std::string StringOr(std::string_view key, std::string fallback);
  /// An integer that fits, ≥ 0.
  int64_t Count(std::string_view key);
  /// A number, or one of the strings "Infinity", "-Infinity".
  double Double(std::string_view key);
  base::Digest Digest(std::string_view key);
  base::Time Time(std::string_view key);
  /// The member, whatever it is, or an empty object.
  const nlohmann::json& Object(std::string_view key);
  const nlohmann::json& Array(std::string_view key);

  const base::Status& status() const { return status_; }

 private:
  const nlohmann::json* Find(std::string_view key);
  void Fail(std::string_view key, std::string_view problem);

  const nlohmann::json& object_;
  std::string where_;
  base::Status status_;
};

}  // namespace fl::registry::internal
