#include "cli/internal/parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <list>

#include "cli/duration.h"
#include "cli/internal/suggest.h"

namespace fl::cli::internal {
namespace {

/// What CLI11 found for one option, before it has a type.
struct Found {
  const Option* option = nullptr;
  CLI::Option* parsed = nullptr;
  std::vector<std::string> values;
  bool on = false;
};

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

template <typename T>
base::Result<T> ParseNumber(const std::string& text) {
  T number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) {
    return base::InvalidArgument("\"" + text + "\" is out of range");
  }
  if (error != std::errc() || stop != end) {
    return base::InvalidArgument("\"" + text + "\" is not a " +
                                 (std::is_integral_v<T> ? "whole number" : "number"));
  }
  return number;
}

struct Assign {
  const std::vector<std::string>& values;
  const std::string& last = values.back();

  template <typename T>
  base::Status Set(T* to, base::Result<T> value) {
    FL_RETURN_IF_ERROR(value.status());
    *to = std::move(value).value();
    return base::OkStatus();
  }
  template <typename T>
  base::Status Set(std::optional<T>* to, base::Result<T> value) {
    FL_RETURN_IF_ERROR(value.status());
    *to = std::move(value).value();
    return base::OkStatus();
  }

  base::Status operator()(bool*) { return base::OkStatus(); }
  base::Status operator()(std::string* to) { return Set<std::string>(to, last); }
  base::Status operator()(std::optional<std::string>* to) { return Set<std::string>(to, last); }
  base::Status operator()(int64_t* to) { return Set(to, ParseNumber<int64_t>(last)); }
  base::Status operator()(std::optional<int64_t>* to) {
    return Set(to, ParseNumber<int64_t>(last));
  }
  base::Status operator()(std::optional<double>* to) {
    base::Result<double> number = ParseNumber<double>(last);
    if (number.ok() && !std::isfinite(*number)) {
      number = base::InvalidArgument("\"" + last + "\" is not a finite number");
    }
    return Set(to, std::move(number));
  }
  base::Status operator()(base::Duration* to) { return Set(to, ParseDuration(last)); }
  base::Status operator()(std::optional<base::Duration>* to) {
    return Set(to, ParseDuration(last));
  }
  base::Status operator()(std::vector<std::string>* to) {
    return Set<std::vector<std::string>>(to, values);
  }
};

base::Status Store(const Found& found) {
  const Option& option = *found.option;
  if (found.parsed->count() == 0) return base::OkStatus();
  if (option.is_switch()) {
    *std::get<bool*>(option.to) = found.on;
    return base::OkStatus();
  }
  const std::string name = option.Names().back();
  if (!option.choices.empty()) {
    for (const std::string& value : found.values) {
      if (std::find(option.choices.begin(), option.choices.end(), value) == option.choices.end()) {
        return base::InvalidArgument(name + ": \"" + value + "\" is not one of " +
                                     Join(option.choices));
      }
    }
  }
  return std::visit(Assign{found.values}, option.to).WithContext(name);
}

/// CLI11's own words for what it refuses, without the parts that speak of C++.
base::Status FromParseError(const CLI::ParseError& error, const std::string& usage) {
  std::string message = error.what();
  while (!message.empty() && (message.back() == '\n' || message.back() == '.')) message.pop_back();
  return base::InvalidArgument(std::move(message), "usage: " + usage);
}

base::Status CheckUnknown(const std::vector<std::string>& rest, const std::vector<Option>& flags,
                          const std::string& usage) {
  if (rest.empty()) return base::OkStatus();
  const std::string& word = rest.front();
  if (word.size() < 2 || word[0] != '-') {
    return base::InvalidArgument("unexpected argument \"" + word + "\"", "usage: " + usage);
  }
  const std::string typed = word.substr(0, word.find('='));
  std::vector<std::string> names = {"--help"};
  for (const Option& flag : flags) {
    for (std::string& name : flag.Names()) {
      if (!flag.hidden && name.starts_with("--")) names.push_back(std::move(name));
    }
  }
  const std::string near = typed.starts_with("--") ? Suggest(typed, names) : "";
  return base::InvalidArgument("unknown flag " + typed,
                               near.empty() ? "usage: " + usage : "did you mean " + near + "?");
}

/// "-o=json" as "-o json", which is how kubectl's flags may be written too.
std::vector<std::string> SplitShortFlags(const std::vector<Option>& flags,
                                         const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  bool flags_end = false;
  for (const std::string& word : arguments) {
    flags_end = flags_end || word == "--";
    const bool candidate = !flags_end && word.size() > 2 && word[0] == '-' && word[2] == '=';
    const bool known = candidate && std::any_of(flags.begin(), flags.end(), [&](const auto& flag) {
                         return !flag.is_switch() && flag.Names().front() == word.substr(0, 2);
                       });
    if (known) {
      words.push_back(word.substr(0, 2));
      words.push_back(word.substr(3));
    } else {
      words.push_back(word);
    }
  }
  return words;
}

}  // namespace

base::Status ParseArguments(const std::string& usage, const std::vector<Option>& flags,
                            const std::vector<Option>& positional,
                            const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::list<Found> found;  // CLI11 keeps references into it
  try {
    for (const std::vector<Option>* options : {&flags, &positional}) {
      for (const Option& option : *options) {
        Found& entry = found.emplace_back();
        entry.option = &option;
        // An argument's own name means nothing to the user's input: keep it apart from flags.
        const std::string name =
            options == &flags ? option.names : "argument" + std::to_string(found.size());
        if (option.is_switch()) {
          entry.parsed = app.add_flag(name, entry.on);
          continue;
        }
        entry.parsed = app.add_option(name, entry.values);
        if (option.is_list()) {
          entry.parsed->expected(1, CLI::detail::expected_max_vector_size);
        } else {
          entry.parsed->expected(1)->allow_extra_args(false)->multi_option_policy(
              CLI::MultiOptionPolicy::TakeAll);
        }
      }
    }
    std::vector<std::string> words = SplitShortFlags(flags, arguments);
    std::reverse(words.begin(), words.end());  // the order that CLI11 takes
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return FromParseError(error, usage);
  }
  FL_RETURN_IF_ERROR(CheckUnknown(app.remaining(), flags, usage));
  for (const Found& entry : found) {
    const bool missing = entry.parsed->count() == 0;
    if (entry.option->required && missing) {
      const bool flag = entry.option->names[0] == '-';
      const std::string name = entry.option->Names().back();
      return base::InvalidArgument(
          (flag ? "the flag " + name + " " + entry.option->value : name) + " is missing",
          "usage: " + usage);
    }
    FL_RETURN_IF_ERROR(Store(entry));
  }
  return base::OkStatus();
}

}  // namespace fl::cli::internal
