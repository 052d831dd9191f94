#pragma once

/// The part of kubectl's JSONPath templates that people use: text, `{.spec.rounds}`,
/// `{$.a['b.c']}`,
/// `{.items[0]}`, `{.items[-1]}`, `{.items[0:2]}`, `{.items[*].metadata.name}`, `{..name}`,
/// `{.items[?(@.spec.rounds>3)].metadata.name}`, `{range .items[*]}…{end}`, `{"\n"}`, and several
/// paths in one template. Source: Kubernetes' reference, "JSONPath Support".

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "spec/value.h"

namespace fl::cli {

/// A template. Immutable, copyable.
class JsonPath {
 public:
  JsonPath() = default;
  /// As kubectl, takes `.a.b` without braces too. kInvalidArgument says where it is wrong.
  static base::Result<JsonPath> Parse(std::string_view text);

  /// Values are separated by a space; strings stand as they are, lists and maps as JSON. A field
  /// that is not there prints nothing. kInvalidArgument for an index past the end.
  base::Result<std::string> Evaluate(const spec::Value& data) const;

  struct Template;

 private:
  std::shared_ptr<const Template> template_;
};

}  // namespace fl::cli
