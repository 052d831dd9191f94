#pragma once

#include <cstdint>
#include <span>

namespace fl::base::internal {

/// True where the 32 bytes are the one right encoding of a point on edwards25519 (RFC 8032 section
/// 5.1.3) that is not of small order. OpenSSL takes any 32 bytes as a public key; with one of small
/// order a signature can be made that fits every message.
bool IsEd25519PublicKey(std::span<const uint8_t> bytes);

}  // namespace fl::base::internal
