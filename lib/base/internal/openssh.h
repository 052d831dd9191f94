#pragma once

/// The encodings of OpenSSH for the two kinds of keys: RFC 4253 section 6.6, RFC 5656 section 3.1,
/// RFC 8709 section 4, and PROTOCOL.key of OpenSSH for private keys. Bytes only; whether a point is
/// on its curve is the caller's to check.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/keys.h"
#include "base/status.h"

namespace fl::base::internal {

/// A key as the formats carry it.
struct RawKey {
  KeyType type = KeyType::kEd25519;
  std::string public_bytes;   ///< Ed25519: 32 bytes. P-384: the point, 0x04 x y, 97 bytes.
  std::string private_bytes;  ///< Ed25519: the seed, 32 bytes. P-384: the scalar, 48 bytes. Or "".

  RawKey() = default;
  RawKey(const RawKey&) = default;
  RawKey(RawKey&&) = default;
  RawKey& operator=(const RawKey&) = default;
  RawKey& operator=(RawKey&&) = default;
  /// Wipes the private bytes.
  ~RawKey();
};

std::string_view OpenSshName(KeyType type);

/// The blob behind the base64 of a public key line.
std::string EncodePublicBlob(const RawKey& key);
/// kInvalidArgument; other kinds of keys are named.
Result<RawKey> DecodePublicBlob(std::span<const uint8_t> blob);

/// The file "BEGIN OPENSSH PRIVATE KEY", unencrypted.
std::string EncodePrivateFile(const RawKey& key, std::string_view comment);
/// Reads one. Public and private half are both taken as they stand.
Result<RawKey> DecodePrivateFile(std::string_view text);

}  // namespace fl::base::internal
