#pragma once

/// Paths to fields, as problems name them: spec.pod.env[0].value, metadata.labels["a.b/c"].

#include <map>
#include <string>
#include <string_view>

#include "spec/value.h"

namespace fl::spec::internal {

std::string JoinKey(std::string_view path, std::string_view key);
std::string JoinIndex(std::string_view path, size_t index);

/// The line of every path of a tree.
class LineIndex {
 public:
  explicit LineIndex(const Value& root);
  /// The line of `path`, or of the nearest thing around it that is there.
  int Find(std::string_view path) const;

 private:
  void Add(const Value& value, const std::string& path);
  std::map<std::string, int, std::less<>> lines_;
};

}  // namespace fl::spec::internal
