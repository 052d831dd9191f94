#pragma once

/// Which fields may change after an object was made.

#include <string_view>

namespace fl::spec::internal {

enum class Change {
  kFree,
  kNone,
  kOnlyUp,      ///< a number may grow
  kOnlyToTrue,  ///< a flag may be set, not taken back
};

struct UpdateRule {
  std::string_view kind;
  std::string_view field;  ///< of spec
  Change change;
};

/// What may happen to `field` of the spec: as the table of mutability.cc says, else nothing in a
/// job and everything in the other kinds.
Change AllowedChange(std::string_view kind, std::string_view field);

}  // namespace fl::spec::internal
