#include "base/encoding.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

namespace fl::base {
namespace {

// OpenSSL counts in int.
constexpr size_t kLargestBase64 = size_t{1} << 30;

}  // namespace

std::string HexEncode(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Result<std::vector<uint8_t>> HexDecode(std::string_view text) {
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  if (text.size() % 2 != 0) return InvalidArgument("hexadecimal text has an odd length");
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = digit(text[i]);
    const int low = digit(text[i + 1]);
    if (high < 0 || low < 0) return InvalidArgument("not hexadecimal text");
    bytes.push_back(static_cast<uint8_t>(high * 16 + low));
  }
  return bytes;
}

std::string Base64Encode(std::span<const uint8_t> bytes) {
  FL_CHECK(bytes.size() <= kLargestBase64);
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

Result<std::vector<uint8_t>> Base64Decode(std::string_view text) {
  if (text.empty()) return std::vector<uint8_t>();
  if (text.size() > kLargestBase64) return InvalidArgument("base64 text is larger than 1 GiB");
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  for (char c : text.substr(0, text.size() - padding)) {
    const bool good = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                      c == '+' || c == '/';
    if (!good) return InvalidArgument("not base64 text");
  }
  if (text.size() % 4 != 0) return InvalidArgument("base64 text is not padded to a multiple of 4");
  std::vector<uint8_t> bytes(text.size() / 4 * 3);
  const int length =
      EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size()));
  if (length < 0) return InvalidArgument("not base64 text");
  bytes.resize(static_cast<size_t>(length) - padding);
  // The only check of the bits that padding leaves over is to encode the last group again.
  const size_t last = bytes.size() / 3 * 3;
  if (padding > 0 && Base64Encode(std::span(bytes).subspan(last)) != text.substr(text.size() - 4)) {
    return InvalidArgument("base64 text has bits set past its end");
  }
  return bytes;
}

bool ConstantTimeEqual(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace fl::base
