#include "spec/internal/object_reader.h"

#include <algorithm>
#include <cmath>

#include "spec/internal/decode.h"
#include "spec/internal/path.h"
#include "spec/internal/suggest.h"

namespace fl::spec::internal {
namespace {

/// Reads as T. Like the API server, checks the rules only of an object that could be read, since a
/// field that is missing for its form would break rules that it keeps.
template <typename T, typename... Options>
Object ReadAs(const Value& tree, Problems& problems, Options... options) {
  T object;
  const size_t before = problems.size();
  Decode(tree, "", object, problems);
  Problems found;
  if (problems.size() == before) {
    found = Validate(object, options...);
  } else {
    CheckFields(object, found);
  }
  for (Problem& problem : found) {
    // A field that could not be read has its default, or the whole section is empty.
    const auto follows = [&problem](const Problem& earlier) {
      return problem.path.starts_with(earlier.path);
    };
    if (std::none_of(problems.begin(), problems.end(), follows)) {
      problems.push_back(std::move(problem));
    }
  }
  return object;
}

/// The string field `name`, or a problem.
std::optional<std::string> Header(const Value& tree, std::string_view name, Problems& problems) {
  const Value* value = tree.Find(name);
  if (value != nullptr && value->is_string()) return *value->As<std::string>();
  problems.push_back(
      {"", 0, std::string(name), value == nullptr ? "is required" : "must be a string"});
  return std::nullopt;
}

std::optional<Object> ReadKind(const Value& tree, AgentKeys keys, Problems& problems) {
  if (!tree.is_map()) {
    problems.push_back({"", 0, "",
                        "must be a map with apiVersion, kind, metadata and spec, not " +
                            std::string(Describe(tree.type()))});
    return std::nullopt;
  }
  const std::optional<std::string> version = Header(tree, "apiVersion", problems);
  if (version && *version != kApiVersion) {
    problems.push_back(
        {"", 0, "apiVersion", "must be " + std::string(kApiVersion) + ", not " + Quote(*version)});
  }
  const std::optional<std::string> kind = Header(tree, "kind", problems);
  if (!kind) return std::nullopt;
  if (*kind == FederatedModel::kKind) return ReadAs<FederatedModel>(tree, problems);
  if (*kind == FederatedClient::kKind) return ReadAs<FederatedClient>(tree, problems, keys);
  if (*kind == FederatedLearningJob::kKind) return ReadAs<FederatedLearningJob>(tree, problems);
  const std::vector<std::string_view> known{FederatedModel::kKind, FederatedClient::kKind,
                                            FederatedLearningJob::kKind};
  problems.push_back(
      {"", 0, "kind",
       "must be " + OneOf(known) + ", not " + Quote(*kind) + DidYouMean(*kind, known)});
  return std::nullopt;
}

}  // namespace

std::optional<Object> ReadObject(const Value& tree, const std::string& path, Problems& problems,
                                 AgentKeys keys) {
  Problems found;
  std::optional<Object> object = ReadKind(tree, keys, found);
  if (found.empty()) return object;
  const LineIndex lines(tree);
  for (Problem& problem : found) {
    problem.line = lines.Find(problem.path);
    if (!path.empty()) {
      problem.path = problem.path.empty() ? path : path + "." + problem.path;
    }
    problems.push_back(std::move(problem));
  }
  return std::nullopt;
}

}  // namespace fl::spec::internal
