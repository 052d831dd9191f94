#include "base/internal/openssh.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "base/random.h"

namespace fl::base::internal {
namespace {

constexpr std::string_view kMagic("openssh-key-v1\0", 15);
constexpr std::string_view kBegin = "-----BEGIN OPENSSH PRIVATE KEY-----";
constexpr std::string_view kEnd = "-----END OPENSSH PRIVATE KEY-----";
constexpr std::string_view kCurve = "nistp384";
constexpr size_t kSeedBytes = 32;
constexpr size_t kScalarBytes = 48;
constexpr size_t kPointBytes = 1 + 2 * kScalarBytes;
constexpr size_t kBlock = 8;  // padding of an unencrypted file

Status Malformed(std::string_view what) {
  return InvalidArgument("the OpenSSH key is malformed: " + std::string(what));
}

/// Reads the "string" and "uint32" of RFC 4251 section 5. After a failure all reads give nothing.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  uint32_t Uint32() {
    if (left_.size() < 4) return Fail();
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(left_[i]);
    left_.remove_prefix(4);
    return value;
  }
  std::string_view String() {
    const uint32_t size = Uint32();
    if (!ok_ || left_.size() < size) {
      Fail();
      return {};
    }
    const std::string_view text = left_.substr(0, size);
    left_.remove_prefix(size);
    return text;
  }
  bool ok() const { return ok_; }
  std::string_view left() const { return left_; }

 private:
  uint32_t Fail() {
    ok_ = false;
    left_ = {};
    return 0;
  }
  std::string_view left_;
  bool ok_ = true;
};

void AddUint32(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

void AddString(std::string& out, std::string_view text) {
  AddUint32(out, static_cast<uint32_t>(text.size()));
  out += text;
}

/// "mpint" of a positive number: no leading zeros, but one where the top bit would be a sign.
void AddPositive(std::string& out, std::string_view bytes) {
  while (!bytes.empty() && bytes.front() == 0) bytes.remove_prefix(1);
  const bool needs_zero = !bytes.empty() && (static_cast<uint8_t>(bytes.front()) & 0x80) != 0;
  AddString(out, (needs_zero ? std::string(1, '\0') : std::string()) + std::string(bytes));
}

Status OtherKind(std::string_view name) {
  return InvalidArgument("a key of type \"" + std::string(name.substr(0, 64)) + "\" is not taken",
                         "use ssh-ed25519 or ecdsa-sha2-nistp384, e.g. ssh-keygen -t ed25519");
}

/// The type and the public half; the two kinds start alike in public blobs and private files.
Result<RawKey> ReadPublic(Reader& reader) {
  const std::string_view name = reader.String();
  if (!reader.ok()) return Malformed("it is cut short");
  RawKey key;
  if (name == OpenSshName(KeyType::kEd25519)) {
    key.type = KeyType::kEd25519;
    key.public_bytes = std::string(reader.String());
    if (key.public_bytes.size() != kSeedBytes) return Malformed("an Ed25519 key has 32 bytes");
    return key;
  }
  if (name != OpenSshName(KeyType::kP384)) return OtherKind(name);
  key.type = KeyType::kP384;
  if (reader.String() != kCurve) return Malformed("the curve is not the one of its type");
  key.public_bytes = std::string(reader.String());
  if (key.public_bytes.size() != kPointBytes || key.public_bytes[0] != 4) {
    return Malformed("a P-384 point has 97 bytes, uncompressed");
  }
  return key;
}

/// The private half behind ReadPublic, up to the comment.
Status ReadPrivate(Reader& reader, RawKey& key) {
  std::string_view secret = reader.String();
  if (key.type == KeyType::kEd25519) {
    if (secret.size() != 2 * kSeedBytes || secret.substr(kSeedBytes) != key.public_bytes) {
      return Malformed("its private half does not end with its public half");
    }
    key.private_bytes = std::string(secret.substr(0, kSeedBytes));
    return OkStatus();
  }
  if (!secret.empty() && (static_cast<uint8_t>(secret.front()) & 0x80) != 0) {
    return Malformed("the private number is negative");
  }
  while (!secret.empty() && secret.front() == 0) secret.remove_prefix(1);
  if (secret.empty() || secret.size() > kScalarBytes) {
    return Malformed("the private number has the wrong size");
  }
  key.private_bytes = std::string(kScalarBytes - secret.size(), '\0') + std::string(secret);
  return OkStatus();
}

/// The bytes between the first and the last line.
Result<std::string> Unwrap(std::string_view text) {
  const size_t begin = text.find(kBegin);
  const size_t end = text.find(kEnd);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    return Malformed("its first or last line is missing");
  }
  std::string base64(text.substr(begin + kBegin.size(), end - begin - kBegin.size()));
  std::erase_if(base64, [](char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; });
  Result<std::vector<uint8_t>> bytes = Base64Decode(base64);
  OPENSSL_cleanse(base64.data(), base64.size());
  if (!bytes.ok()) return Malformed("it is not base64");
  std::string unwrapped(bytes->begin(), bytes->end());
  OPENSSL_cleanse(bytes->data(), bytes->size());
  return unwrapped;
}

Result<RawKey> DecodeUnwrapped(std::string_view bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic) return Malformed("it does not start as one");
  Reader reader(bytes.substr(kMagic.size()));
  const std::string_view cipher = reader.String();
  const std::string_view kdf = reader.String();
  reader.String();  // options of the kdf
  const uint32_t keys = reader.Uint32();
  const std::string_view public_blob = reader.String();
  const std::string_view section = reader.String();
  if (!reader.ok()) return Malformed("it is cut short");
  if (cipher != "none" || kdf != "none") {
    return InvalidArgument("the OpenSSH key is encrypted with a passphrase",
                           "a program has nobody to ask: make a copy without one by "
                           "ssh-keygen -p -N '' -f COPY");
  }
  if (keys != 1) return Malformed("it does not have exactly one key");

  Reader inner(section);
  if (inner.Uint32() != inner.Uint32()) return Malformed("its check numbers differ");
  FL_ASSIGN_OR_RETURN(RawKey key, ReadPublic(inner));
  FL_RETURN_IF_ERROR(ReadPrivate(inner, key));
  inner.String();  // comment
  if (!inner.ok()) return Malformed("its private section is cut short");
  for (size_t i = 0; i < inner.left().size(); ++i) {
    if (i >= kBlock || inner.left()[i] != static_cast<char>(i + 1)) {
      return Malformed("its padding is wrong");
    }
  }
  if (public_blob != EncodePublicBlob(key)) {
    return Malformed("its two copies of the public key differ");
  }
  return key;
}

}  // namespace

RawKey::~RawKey() { OPENSSL_cleanse(private_bytes.data(), private_bytes.size()); }

std::string_view OpenSshName(KeyType type) {
  return type == KeyType::kEd25519 ? "ssh-ed25519" : "ecdsa-sha2-nistp384";
}

std::string EncodePublicBlob(const RawKey& key) {
  std::string blob;
  AddString(blob, OpenSshName(key.type));
  if (key.type == KeyType::kP384) AddString(blob, kCurve);
  AddString(blob, key.public_bytes);
  return blob;
}

Result<RawKey> DecodePublicBlob(std::span<const uint8_t> blob) {
  Reader reader(AsText(blob));
  FL_ASSIGN_OR_RETURN(RawKey key, ReadPublic(reader));
  if (!reader.ok() || !reader.left().empty()) return Malformed("there are bytes after its end");
  return key;
}

std::string EncodePrivateFile(const RawKey& key, std::string_view comment) {
  const std::string blob = EncodePublicBlob(key);
  std::string section;
  const auto check = static_cast<uint32_t>(RandomSource::Secure().Uint64());
  AddUint32(section, check);
  AddUint32(section, check);
  section += blob;  // the private section repeats the public fields as they are
  if (key.type == KeyType::kEd25519) {
    AddString(section, key.private_bytes + key.public_bytes);
  } else {
    AddPositive(section, key.private_bytes);
  }
  AddString(section, comment);
  for (char pad = 1; section.size() % kBlock != 0; ++pad) section += pad;

  std::string bytes(kMagic);
  AddString(bytes, "none");
  AddString(bytes, "none");
  AddString(bytes, "");
  AddUint32(bytes, 1);
  AddString(bytes, blob);
  AddString(bytes, section);
  std::string base64 = Base64Encode(AsBytes(bytes));
  std::string file = std::string(kBegin) + "\n";
  constexpr size_t kLine = 70;
  for (size_t i = 0; i < base64.size(); i += kLine) file += base64.substr(i, kLine) + "\n";
  file += std::string(kEnd) + "\n";
  for (std::string* secret : {&section, &bytes, &base64}) {
    OPENSSL_cleanse(secret->data(), secret->size());
  }
  return file;
}

Result<RawKey> DecodePrivateFile(std::string_view text) {
  FL_ASSIGN_OR_RETURN(std::string bytes, Unwrap(text));
  Result<RawKey> key = DecodeUnwrapped(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return key;
}

}  // namespace fl::base::internal
