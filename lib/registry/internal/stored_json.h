#pragma once

/// Reading JSON of the registry's own: as base/json.h, but what is wrong with it is kDataLoss.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/status.h"

namespace fl::registry::internal {

/// kDataLoss, with `where`, for what is not JSON.
base::Result<nlohmann::json> ParseStored(std::string_view text, std::string_view where);

/// base::JsonReader with the types of this module; reads that fail give empty values, and the first
/// problem is kept in `status`. `where` leads its message.
class StoredFields {
 public:
  StoredFields(const nlohmann::json& object, std::string where);
  StoredFields(nlohmann::json&&, std::string) = delete;

  bool Has(std::string_view key) const { return reader_.Has(key); }
  std::string String(std::string_view key);
  /// An integer from 0.
  int64_t Count(std::string_view key);
  /// A number, or "Infinity".
  double Double(std::string_view key);
  base::Digest Digest(std::string_view key);
  base::Time Time(std::string_view key);
  const nlohmann::json& Object(std::string_view key);
  const nlohmann::json& Array(std::string_view key);

  base::Status status() const;

 private:
  void Fail(std::string_view key, std::string_view problem);
  base::JsonReader reader_;
};

}  // namespace fl::registry::internal
