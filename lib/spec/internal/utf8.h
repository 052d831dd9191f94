#pragma once

/// UTF-8, as strictly as RFC 3629: no overlong forms, no surrogates.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fl::spec::internal {

struct CodePoint {
  uint32_t value = 0;
  size_t length = 1;  ///< bytes; 1 where it is not valid
  bool valid = false;
};

/// The first code point of `text`, which is not empty.
CodePoint NextCodePoint(std::string_view text);

bool IsValidUtf8(std::string_view text);

/// What YAML calls printable, plus tab and line breaks, less the byte order mark.
bool IsPrintable(uint32_t code_point);

}  // namespace fl::spec::internal
