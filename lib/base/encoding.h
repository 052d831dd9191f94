#pragma once

/// Bytes as text.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fl::base {

inline std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string_view AsText(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Lower-case hexadecimal.
std::string HexEncode(std::span<const uint8_t> bytes);
/// Digits of either case. kInvalidArgument.
Result<std::vector<uint8_t>> HexDecode(std::string_view text);

/// RFC 4648 section 4, padded. At most 1 GiB.
std::string Base64Encode(std::span<const uint8_t> bytes);
/// Strict, so that bytes have one text: no white space, right padding, unused bits zero.
/// kInvalidArgument, also past 1 GiB.
Result<std::vector<uint8_t>> Base64Decode(std::string_view text);

/// True where both have the same bytes; takes time that depends on the lengths only.
bool ConstantTimeEqual(std::string_view a, std::string_view b);

}  // namespace fl::base
