#include "cli/resource.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace fl::cli {

std::string_view Name(ResourceKind kind) {
  switch (kind) {
    case ResourceKind::kJob:
      return "job";
    case ResourceKind::kModel:
      return "model";
    case ResourceKind::kClient:
      return "client";
  }
  return "";
}

std::optional<ResourceKind> ParseResourceKind(std::string_view word) {
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  struct Names {
    ResourceKind kind;
    std::array<std::string_view, 5> names;
  };
  static constexpr std::array<Names, 3> kKinds = {
      {{ResourceKind::kJob,
        {"job", "jobs", "flj", "federatedlearningjob", "federatedlearningjobs"}},
       {ResourceKind::kModel, {"model", "models", "flm", "federatedmodel", "federatedmodels"}},
       {ResourceKind::kClient,
        {"client", "clients", "flc", "federatedclient", "federatedclients"}}}};
  for (const Names& kind : kKinds) {
    if (std::find(kind.names.begin(), kind.names.end(), lower) != kind.names.end()) {
      return kind.kind;
    }
  }
  return std::nullopt;
}

base::Result<ResourceList> ParseResources(const std::vector<std::string>& words) {
  const auto unknown = [](std::string_view word) {
    return base::InvalidArgument("unknown kind \"" + std::string(word) + "\"",
                                 "write job, model or client");
  };
  ResourceList list;
  if (words.empty()) return unknown("");
  if (words[0].find('/') == std::string::npos) {
    const std::optional<ResourceKind> kind = ParseResourceKind(words[0]);
    if (!kind) return unknown(words[0]);
    list.kind = *kind;
    list.names.assign(words.begin() + 1, words.end());
    return list;
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t slash = words[i].find('/');
    const std::optional<ResourceKind> kind = ParseResourceKind(words[i].substr(0, slash));
    if (slash == std::string::npos || !kind) return unknown(words[i].substr(0, slash));
    if (i > 0 && *kind != list.kind) {
      return base::InvalidArgument("ask for one kind at a time: " + words[0] + " and " + words[i]);
    }
    list.kind = *kind;
    list.names.push_back(words[i].substr(slash + 1));
  }
  return list;
}

}  // namespace fl::cli
