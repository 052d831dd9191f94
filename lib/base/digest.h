#pragma once

/// SHA-256, as OCI names it ("sha256:<64 hex digits>").

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace fl::base {

/// A SHA-256 digest. The default value is all zeros, which stands for none.
class Digest {
 public:
  Digest() = default;
  explicit Digest(const std::array<uint8_t, 32>& bytes) : bytes_(bytes) {}

  /// Reads "sha256:" and 64 lower-case hex digits. kInvalidArgument.
  static Result<Digest> Parse(std::string_view text);
  /// Reads the value of a Repr-Digest or Content-Digest header (RFC 9530) that has a sha-256
  /// member, e.g. "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:". kInvalidArgument.
  static Result<Digest> ParseReprDigest(std::string_view header);
  static Digest Of(std::span<const uint8_t> bytes);
  static Digest Of(std::string_view text);

  bool empty() const { return *this == Digest(); }
  const std::array<uint8_t, 32>& bytes() const { return bytes_; }
  /// "sha256:…"
  std::string ToString() const;
  /// The 64 hex digits.
  std::string Hex() const;
  /// "sha-256=:…:" for RFC 9530 headers.
  std::string ToReprDigest() const;

  auto operator<=>(const Digest&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Digest& digest) {
    return out << digest.ToString();
  }

 private:
  std::array<uint8_t, 32> bytes_{};
};

/// Hashes a stream. One thread.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(std::span<const uint8_t> bytes);
  /// The digest of all that was given; the object is used up.
  Digest Finish() &&;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fl::base
