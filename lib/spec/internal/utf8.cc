#include "spec/internal/utf8.h"

namespace fl::spec::internal {

CodePoint NextCodePoint(std::string_view text) {
  const auto byte = [text](size_t i) { return uint32_t{static_cast<unsigned char>(text[i])}; };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  size_t length = 0;
  uint32_t smallest = 0;
  uint32_t value = 0;
  if ((lead & 0xE0) == 0xC0) {
    length = 2, smallest = 0x80, value = lead & 0x1F;
  } else if ((lead & 0xF0) == 0xE0) {
    length = 3, smallest = 0x800, value = lead & 0x0F;
  } else if ((lead & 0xF8) == 0xF0) {
    length = 4, smallest = 0x10000, value = lead & 0x07;
  }
  if (length == 0 || text.size() < length) return {};
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3F);
  }
  if (value < smallest || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
  return {value, length, true};
}

bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const CodePoint next = NextCodePoint(text);
    if (!next.valid) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

bool IsPrintable(uint32_t code_point) {
  if (code_point < 0x20) return code_point == '\t' || code_point == '\n' || code_point == '\r';
  if (code_point >= 0x7F && code_point <= 0x9F) return code_point == 0x85;
  return code_point != 0xFEFF && code_point != 0xFFFE && code_point != 0xFFFF;
}

}  // namespace fl::spec::internal
