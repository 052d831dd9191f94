#include "trainer/config.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"

namespace fl::trainer {

using base::InvalidArgument;
using base::Result;
using base::Status;
using nlohmann::json;

struct Config::State {
  json object;
  std::set<std::string> read;
};

namespace {

std::string Text(double number) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  return std::string(buffer.data(), end);
}

}  // namespace

Config::Config(std::unique_ptr<State> state) : state_(std::move(state)) {}
Config::Config(Config&&) noexcept = default;
Config& Config::operator=(Config&&) noexcept = default;
Config::~Config() = default;

Result<Config> Config::Parse(std::string_view text) {
  auto state = std::make_unique<State>();
  FL_ASSIGN_OR_RETURN(state->object, base::ParseJson(text.empty() ? "{}" : text, "trainer config"));
  if (!state->object.is_object()) return InvalidArgument("trainer config: not a map");
  return Config(std::move(state));
}

Result<double> Config::Number(const std::string& name, double fallback, double low, double high) {
  state_->read.insert(name);
  const auto found = state_->object.find(name);
  if (found == state_->object.end() || found->is_null()) return fallback;
  double number = NAN;
  if (found->is_number()) {
    number = found->get<double>();
  } else if (found->is_string()) {
    const std::string& text = found->get_ref<const std::string&>();
    double parsed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (error == std::errc() && end == text.data() + text.size()) number = parsed;
  }
  if (!std::isfinite(number) || number < low || number > high) {
    return InvalidArgument("trainer config: " + name + " is " + base::DumpJson(*found),
                           "it is a number from " + Text(low) + " to " + Text(high));
  }
  return number;
}

Result<int64_t> Config::Integer(const std::string& name, int64_t fallback, int64_t low,
                                int64_t high) {
  FL_ASSIGN_OR_RETURN(const double number,
                      Number(name, static_cast<double>(fallback), static_cast<double>(low),
                             static_cast<double>(high)));
  if (number != std::floor(number)) {
    return InvalidArgument("trainer config: " + name + " is " + Text(number),
                           "it is a whole number");
  }
  return static_cast<int64_t>(number);
}

Status Config::CheckAllRead() const {
  for (const auto& [name, value] : state_->object.items()) {
    if (state_->read.contains(name)) continue;
    std::string known;
    for (const std::string& other : state_->read) known += (known.empty() ? "" : ", ") + other;
    return InvalidArgument("trainer config: no such entry: " + name, "known entries: " + known);
  }
  return base::OkStatus();
}

}  // namespace fl::trainer
