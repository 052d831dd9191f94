#pragma once

/// The keys by which clients are known: ECDSA P-384 with SHA-384, and Ed25519. Values are immutable
/// and may be used from any thread.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace fl::base {

enum class KeyType { kP384, kEd25519 };

/// The public half.
class PublicKey {
 public:
  /// Reads one line as in authorized_keys: "ecdsa-sha2-nistp384 AAAA…[ comment]" or
  /// "ssh-ed25519 AAAA…". The point is checked to be on the curve and not of small order.
  /// kInvalidArgument.
  static Result<PublicKey> ParseOpenSsh(std::string_view line);
  /// Reads SubjectPublicKeyInfo as PEM. kInvalidArgument.
  static Result<PublicKey> ParsePem(std::string_view pem);

  KeyType type() const;
  /// "ecdsa-sha2-nistp384 AAAA…" without a comment: the canonical form in YAML and JSON.
  std::string ToOpenSsh() const;
  /// "SHA256:" and unpadded base64, as ssh-keygen -l prints it.
  std::string Fingerprint() const;
  /// kPermissionDenied where `signature` is not this key's over `message`.
  Status Verify(std::span<const uint8_t> message, std::span<const uint8_t> signature) const;

  friend bool operator==(const PublicKey& a, const PublicKey& b) {
    return a.ToOpenSsh() == b.ToOpenSsh();
  }

 private:
  friend class PrivateKey;
  struct State;
  explicit PublicKey(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// The private half. Its text forms are never part of a message.
class PrivateKey {
 public:
  static Result<PrivateKey> Generate(KeyType type);
  /// Reads PKCS8 PEM ("BEGIN PRIVATE KEY"), SEC1 PEM ("BEGIN EC PRIVATE KEY") or an unencrypted
  /// OpenSSH file ("BEGIN OPENSSH PRIVATE KEY"). Another curve or type, or an encrypted file, is
  /// kInvalidArgument and says which it is and how to convert it.
  static Result<PrivateKey> Parse(std::string_view text);
  /// Parse of a file, which others must not read and its group not write (kPermissionDenied, with a
  /// chmod hint).
  static Result<PrivateKey> Load(const Path& path);

  KeyType type() const;
  PublicKey public_key() const;
  /// PKCS8 PEM.
  std::string ToPem() const;
  /// "BEGIN OPENSSH PRIVATE KEY", unencrypted.
  std::string ToOpenSshFile(std::string_view comment = "") const;
  /// Ed25519: 64 bytes (RFC 8032). P-384: ASN.1 DER of (r, s) over SHA-384.
  std::string Sign(std::span<const uint8_t> message) const;

 private:
  struct State;
  explicit PrivateKey(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace fl::base
