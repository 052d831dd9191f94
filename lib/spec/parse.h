#pragma once

/// Reading the kinds from YAML (JSON is YAML too), as kubectl and the API server read them, or
/// stricter. Pure and re-entrant. The README has the table of scalars and the limits.

#include <string>
#include <string_view>
#include <vector>

#include "spec/problem.h"
#include "spec/types.h"
#include "spec/validate.h"

namespace fl::spec {

/// No text that is read here may be larger; kubectl's server takes 3 MiB an object.
inline constexpr size_t kMaxTextBytes = size_t{16} << 20;
/// How deep lists and maps may be nested.
inline constexpr int kMaxDepth = 100;
/// How many scalars, lists and maps one document may have.
inline constexpr size_t kMaxValues = 1'000'000;
/// How many values, and bytes of scalars, all aliases of one document may add up to.
inline constexpr size_t kMaxAliasValues = 100'000;
inline constexpr size_t kMaxAliasBytes = size_t{4} << 20;

struct Document {
  Object object;
  std::string source;
  int line = 0;  ///< where the object begins
};

struct ParseResult {
  /// The objects without problems, in the order of the text, without defaults applied.
  std::vector<Document> documents;
  /// Everything that is wrong, in the order of the text. If there is any, use none of the objects:
  /// the caller asked for all of them.
  Problems problems;
};

/// Reads and validates every document of `text`; `kind: List` counts as its items. Empty documents
/// are skipped, unknown fields and duplicate keys are problems, `status` and what the API server
/// keeps in `metadata` are ignored. Two objects of one kind, namespace and name are a problem.
/// `source` names the text in problems, e.g. the file.
ParseResult ParseYaml(std::string_view text, std::string_view source);

/// ParseYaml of several texts as one set of objects.
struct NamedText {
  std::string_view source;
  std::string_view text;
};
ParseResult ParseYaml(const std::vector<NamedText>& texts, AgentKeys keys = AgentKeys::kGiven);

}  // namespace fl::spec
