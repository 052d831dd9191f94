#include "base/digest.h"

#include <openssl/evp.h>

#include <algorithm>

#include "base/encoding.h"

namespace fl::base {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  FL_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::span<const uint8_t> bytes) {
  FL_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

Digest Sha256::Finish() && {
  std::array<uint8_t, 32> bytes{};
  FL_CHECK(EVP_DigestFinal_ex(state_->context, bytes.data(), nullptr) == 1);
  return Digest(bytes);
}

Result<Digest> Digest::Parse(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  const Status bad =
      InvalidArgument("\"" + std::string(text) + "\" is not sha256: and 64 lower-case hex digits");
  if (!text.starts_with(kPrefix) || text.size() != kPrefix.size() + 64) return bad;
  text.remove_prefix(kPrefix.size());
  if (text.find_first_not_of("0123456789abcdef") != std::string_view::npos) return bad;
  FL_ASSIGN_OR_RETURN(const std::vector<uint8_t> decoded, HexDecode(text));
  std::array<uint8_t, 32> bytes{};
  std::copy(decoded.begin(), decoded.end(), bytes.begin());
  return Digest(bytes);
}

Result<Digest> Digest::ParseReprDigest(std::string_view header) {
  constexpr std::string_view kMember = "sha-256=:";
  const Status bad = InvalidArgument("digest header \"" + std::string(header) +
                                     "\" has no sha-256=:BASE64: of 32 bytes");
  std::string_view encoded;
  // Members are parted by commas, which no digest has inside; of two alike the last one counts
  // (RFC 8941, section 3.2).
  while (!header.empty()) {
    const size_t end = std::min(header.find(','), header.size());
    std::string_view member = header.substr(0, end);
    header.remove_prefix(std::min(end + 1, header.size()));
    member.remove_prefix(std::min(member.find_first_not_of(" \t"), member.size()));
    if (!member.starts_with(kMember)) continue;
    member.remove_prefix(kMember.size());
    const size_t close = member.find(':');
    if (close == std::string_view::npos) return bad;
    encoded = member.substr(0, close);
  }
  const Result<std::vector<uint8_t>> decoded = Base64Decode(encoded);
  if (!decoded.ok() || decoded->size() != 32) return bad;
  std::array<uint8_t, 32> bytes{};
  std::copy(decoded->begin(), decoded->end(), bytes.begin());
  return Digest(bytes);
}

Digest Digest::Of(std::span<const uint8_t> bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return std::move(hash).Finish();
}
Digest Digest::Of(std::string_view text) { return Of(AsBytes(text)); }

std::string Digest::ToString() const { return "sha256:" + Hex(); }
std::string Digest::Hex() const { return HexEncode(bytes_); }
std::string Digest::ToReprDigest() const { return "sha-256=:" + Base64Encode(bytes_) + ":"; }

}  // namespace fl::base
