#pragma once

/// Typed reading of a trainer's config, for the built-in trainers.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace fl::trainer {

/// A JSON object whose entries are read by name and type. Entries that nobody read are an error, so
/// that a misspelt name is noticed. One thread.
class Config {
 public:
  /// kInvalidArgument where `json` is not an object. "" stands for "{}".
  static base::Result<Config> Parse(std::string_view json);
  Config(Config&&) noexcept;
  Config& operator=(Config&&) noexcept;
  ~Config();

  /// The number `name` (also given as a string of one, as fractions are in our YAML), or `fallback`
  /// where there is none. kInvalidArgument unless finite and in [`low`, `high`].
  base::Result<double> Number(const std::string& name, double fallback, double low, double high);
  /// The same for whole numbers; 10.0 is one.
  base::Result<int64_t> Integer(const std::string& name, int64_t fallback, int64_t low,
                                int64_t high);
  /// kInvalidArgument naming the first entry that was not read, and the names that were.
  base::Status CheckAllRead() const;

 private:
  struct State;
  explicit Config(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fl::trainer
