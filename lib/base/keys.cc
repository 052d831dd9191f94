#include "base/keys.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <climits>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/encoding.h"
#include "base/internal/ed25519_point.h"
#include "base/internal/openssh.h"

namespace fl::base {
namespace {

using internal::RawKey;

template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using KeyContextPtr = std::unique_ptr<EVP_PKEY_CTX, FreeWith<EVP_PKEY_CTX_free>>;
using DigestContextPtr = std::unique_ptr<EVP_MD_CTX, FreeWith<EVP_MD_CTX_free>>;
using BioPtr = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using NumberPtr = std::unique_ptr<BIGNUM, FreeWith<BN_clear_free>>;
using ParamBuilderPtr = std::unique_ptr<OSSL_PARAM_BLD, FreeWith<OSSL_PARAM_BLD_free>>;
using ParamsPtr = std::unique_ptr<OSSL_PARAM, FreeWith<OSSL_PARAM_free>>;

constexpr size_t kCoordinateBytes = 48;
constexpr uint64_t kLargestKeyFile = 64 * 1024;
constexpr const char* kGenerateHint = "make one by: ssh-keygen -t ed25519 -N '' -f FILE";

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

KeyPtr MakeEd25519(const RawKey& raw, bool with_private) {
  const std::string& bytes = with_private ? raw.private_bytes : raw.public_bytes;
  return KeyPtr(
      with_private
          ? EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, Bytes(bytes), bytes.size())
          : EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(bytes), bytes.size()));
}

KeyPtr MakeP384(const RawKey& raw, bool with_private) {
  const ParamBuilderPtr builder(OSSL_PARAM_BLD_new());
  const NumberPtr scalar(
      BN_bin2bn(Bytes(raw.private_bytes), static_cast<int>(raw.private_bytes.size()), nullptr));
  if (builder == nullptr || scalar == nullptr ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "P-384", 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY,
                                       raw.public_bytes.data(), raw.public_bytes.size()) != 1 ||
      (with_private &&
       OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, scalar.get()) != 1)) {
    return nullptr;
  }
  const ParamsPtr params(OSSL_PARAM_BLD_to_param(builder.get()));
  const KeyContextPtr context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  if (params == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, with_private ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY,
                        params.get()) != 1) {
    return nullptr;
  }
  return KeyPtr(key);
}

bool PublicHalfFits(const RawKey& raw, EVP_PKEY* key, bool with_private) {
  if (raw.type == KeyType::kEd25519) {
    if (!with_private) return internal::IsEd25519PublicKey(AsBytes(raw.public_bytes));
    std::array<unsigned char, 32> derived{};
    size_t size = derived.size();
    return EVP_PKEY_get_raw_public_key(key, derived.data(), &size) == 1 &&
           AsText(derived) == raw.public_bytes;
  }
  const KeyContextPtr context(EVP_PKEY_CTX_new(key, nullptr));
  return context != nullptr && EVP_PKEY_public_check(context.get()) == 1 &&
         (!with_private || EVP_PKEY_pairwise_check(context.get()) == 1);
}

/// The key of OpenSSL for `raw`, checked. kInvalidArgument.
Result<KeyPtr> MakeKey(const RawKey& raw, bool with_private) {
  KeyPtr key =
      raw.type == KeyType::kEd25519 ? MakeEd25519(raw, with_private) : MakeP384(raw, with_private);
  const bool fits = key != nullptr && PublicHalfFits(raw, key.get(), with_private);
  ERR_clear_error();
  if (!fits) {
    return InvalidArgument(with_private ? "the key's private and public half do not belong together"
                                        : "the public key is not a point on its curve");
  }
  return key;
}

std::string Padded(const BIGNUM* number) {
  std::string bytes(kCoordinateBytes, '\0');
  FL_CHECK(BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()),
                        static_cast<int>(bytes.size())) == static_cast<int>(bytes.size()));
  return bytes;
}

Result<std::string> NumberOf(EVP_PKEY* key, const char* parameter) {
  BIGNUM* raw = nullptr;
  const bool found = EVP_PKEY_get_bn_param(key, parameter, &raw) == 1;
  const NumberPtr number(raw);
  if (!found || BN_num_bytes(number.get()) > static_cast<int>(kCoordinateBytes)) {
    ERR_clear_error();
    return InvalidArgument("the key's numbers cannot be read");
  }
  return Padded(number.get());
}

/// What OpenSSL read from PEM, as the bytes that all formats share. kInvalidArgument names the kind
/// where it is another one.
Result<RawKey> FromPkey(EVP_PKEY* key, bool with_private) {
  RawKey raw;
  if (EVP_PKEY_is_a(key, "ED25519") == 1) {
    raw.type = KeyType::kEd25519;
    raw.public_bytes.resize(32);
    raw.private_bytes.resize(with_private ? 32 : 0);
    size_t size = 32;
    FL_CHECK(EVP_PKEY_get_raw_public_key(
                 key, reinterpret_cast<unsigned char*>(raw.public_bytes.data()), &size) == 1);
    if (with_private) {
      FL_CHECK(EVP_PKEY_get_raw_private_key(
                   key, reinterpret_cast<unsigned char*>(raw.private_bytes.data()), &size) == 1);
    }
    return raw;
  }
  std::array<char, 64> group{};
  size_t length = 0;
  const char* kind = EVP_PKEY_get0_type_name(key);
  std::string found = kind == nullptr ? "unknown" : kind;
  if (EVP_PKEY_is_a(key, "EC") == 1 &&
      EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, group.data(), group.size(),
                                     &length) == 1) {
    found += std::string(" on the curve ") + group.data();
  }
  ERR_clear_error();
  if (std::string_view(group.data()) != "secp384r1") {
    return InvalidArgument("the key is of type " + found + "; Ed25519 and EC P-384 are taken",
                           kGenerateHint);
  }
  raw.type = KeyType::kP384;
  FL_ASSIGN_OR_RETURN(const std::string x, NumberOf(key, OSSL_PKEY_PARAM_EC_PUB_X));
  FL_ASSIGN_OR_RETURN(const std::string y, NumberOf(key, OSSL_PKEY_PARAM_EC_PUB_Y));
  raw.public_bytes = "\x04" + x + y;
  if (with_private) {
    FL_ASSIGN_OR_RETURN(raw.private_bytes, NumberOf(key, OSSL_PKEY_PARAM_PRIV_KEY));
  }
  return raw;
}

BioPtr ReadOnlyBio(std::string_view text) {
  FL_CHECK(text.size() <= INT_MAX);
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

const EVP_MD* HashOf(KeyType type) {
  return type == KeyType::kP384 ? EVP_sha384() : nullptr;  // Ed25519 hashes by itself
}

}  // namespace

struct PublicKey::State {
  RawKey raw;
  KeyPtr key;
};

struct PrivateKey::State {
  RawKey raw;
  KeyPtr key;
  std::shared_ptr<const PublicKey::State> public_half;

  static Result<PrivateKey> Make(RawKey raw) {
    FL_ASSIGN_OR_RETURN(KeyPtr key, MakeKey(raw, /*with_private=*/true));
    auto public_half = std::make_shared<PublicKey::State>();
    public_half->raw.type = raw.type;
    public_half->raw.public_bytes = raw.public_bytes;
    FL_ASSIGN_OR_RETURN(public_half->key, MakeKey(public_half->raw, /*with_private=*/false));
    auto state = std::make_shared<State>();
    state->raw = std::move(raw);
    state->key = std::move(key);
    state->public_half = std::move(public_half);
    return PrivateKey(std::move(state));
  }
};

Result<PublicKey> PublicKey::ParseOpenSsh(std::string_view line) {
  line = Trim(line);
  if (line.find_first_of("\r\n") != std::string_view::npos) {
    return InvalidArgument("a public key is one line");
  }
  const size_t space = line.find_first_of(" \t");
  const std::string_view name = line.substr(0, space);
  if (space == std::string_view::npos) {
    return InvalidArgument("\"" + std::string(line.substr(0, 40)) + "\" is no public key",
                           "a public key looks like: ssh-ed25519 AAAA...");
  }
  std::string_view rest = Trim(line.substr(space));
  rest = rest.substr(0, rest.find_first_of(" \t"));
  const Result<std::vector<uint8_t>> blob = Base64Decode(rest);
  if (!blob.ok()) {
    return InvalidArgument(
        "the public key of type \"" + std::string(name.substr(0, 64)) + "\" is not base64",
        "copy the whole line of the .pub file");
  }
  FL_ASSIGN_OR_RETURN(RawKey raw, internal::DecodePublicBlob(*blob));
  if (internal::OpenSshName(raw.type) != name) {
    return InvalidArgument("the public key says \"" + std::string(name.substr(0, 64)) +
                           "\" but is a " + std::string(internal::OpenSshName(raw.type)));
  }
  auto state = std::make_shared<State>();
  FL_ASSIGN_OR_RETURN(state->key, MakeKey(raw, /*with_private=*/false));
  state->raw = std::move(raw);
  return PublicKey(std::move(state));
}

Result<PublicKey> PublicKey::ParsePem(std::string_view pem) {
  if (pem.size() > kLargestKeyFile) return InvalidArgument("the text is too long for a public key");
  const BioPtr bio = ReadOnlyBio(pem);
  const KeyPtr key(PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return InvalidArgument("the text is not a PEM public key",
                           "one starts with -----BEGIN PUBLIC KEY-----");
  }
  FL_ASSIGN_OR_RETURN(RawKey raw, FromPkey(key.get(), /*with_private=*/false));
  auto state = std::make_shared<State>();
  FL_ASSIGN_OR_RETURN(state->key, MakeKey(raw, /*with_private=*/false));
  state->raw = std::move(raw);
  return PublicKey(std::move(state));
}

KeyType PublicKey::type() const { return state_->raw.type; }

std::string PublicKey::ToOpenSsh() const {
  return std::string(internal::OpenSshName(type())) + " " +
         Base64Encode(AsBytes(internal::EncodePublicBlob(state_->raw)));
}

std::string PublicKey::Fingerprint() const {
  std::string base64 = Base64Encode(Digest::Of(internal::EncodePublicBlob(state_->raw)).bytes());
  while (!base64.empty() && base64.back() == '=') base64.pop_back();
  return "SHA256:" + base64;
}

Status PublicKey::Verify(std::span<const uint8_t> message,
                         std::span<const uint8_t> signature) const {
  const DigestContextPtr context(EVP_MD_CTX_new());
  const bool good = context != nullptr &&
                    EVP_DigestVerifyInit(context.get(), nullptr, HashOf(type()), nullptr,
                                         state_->key.get()) == 1 &&
                    EVP_DigestVerify(context.get(), signature.data(), signature.size(),
                                     message.data(), message.size()) == 1;
  ERR_clear_error();
  if (!good) return PermissionDenied("the signature is not by the key " + Fingerprint());
  return OkStatus();
}

Result<PrivateKey> PrivateKey::Generate(KeyType type) {
  const KeyPtr key(type == KeyType::kEd25519 ? EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")
                                             : EVP_EC_gen("P-384"));
  if (key == nullptr) {
    ERR_clear_error();
    return Internal("OpenSSL cannot make a key");
  }
  FL_ASSIGN_OR_RETURN(RawKey raw, FromPkey(key.get(), /*with_private=*/true));
  return State::Make(std::move(raw));
}

Result<PrivateKey> PrivateKey::Parse(std::string_view text) {
  if (text.size() > kLargestKeyFile) return InvalidArgument("the text is too long for a key");
  if (text.find("-----BEGIN OPENSSH PRIVATE KEY-----") != std::string_view::npos) {
    FL_ASSIGN_OR_RETURN(RawKey raw, internal::DecodePrivateFile(text));
    return State::Make(std::move(raw));
  }
  if (text.find("-----BEGIN ENCRYPTED PRIVATE KEY-----") != std::string_view::npos ||
      text.find("Proc-Type: 4,ENCRYPTED") != std::string_view::npos) {
    return InvalidArgument("the PEM key is encrypted with a passphrase",
                           "a program has nobody to ask: make a copy without one by "
                           "openssl pkey -in FILE -out COPY");
  }
  const BioPtr bio = ReadOnlyBio(text);
  const auto no_password = [](char*, int, int, void*) { return -1; };
  const KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    const bool is_public = text.find("PUBLIC KEY-----") != std::string_view::npos ||
                           text.substr(0, 4) == "ssh-" || text.substr(0, 6) == "ecdsa-";
    return InvalidArgument(is_public ? "this is the public half of a key; the private one is needed"
                                     : "the text is not a private key",
                           kGenerateHint);
  }
  FL_ASSIGN_OR_RETURN(RawKey raw, FromPkey(key.get(), /*with_private=*/true));
  return State::Make(std::move(raw));
}

Result<PrivateKey> PrivateKey::Load(const Path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    return FromErrno(errno, "cannot open the key file " + path.string());
  }
  // A Secret mounted for a pod with an fsGroup is readable by that group, which is the pod's own.
  constexpr mode_t kTooOpen = S_IWGRP | S_IRWXO;
  if ((info.st_mode & kTooOpen) != 0) {
    return PermissionDenied("the key file " + path.string() + " is open to other users",
                            "chmod 600 " + path.string());
  }
  FL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestKeyFile));
  Result<PrivateKey> key = Parse(text);
  if (!key.ok()) return key.status().WithContext(path.string());
  return key;
}

KeyType PrivateKey::type() const { return state_->raw.type; }

PublicKey PrivateKey::public_key() const { return PublicKey(state_->public_half); }

std::string PrivateKey::ToPem() const {
  const BioPtr bio(BIO_new(BIO_s_secmem()));
  FL_CHECK(PEM_write_bio_PKCS8PrivateKey(bio.get(), state_->key.get(), nullptr, nullptr, 0, nullptr,
                                         nullptr) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string PrivateKey::ToOpenSshFile(std::string_view comment) const {
  return internal::EncodePrivateFile(state_->raw, comment);
}

std::string PrivateKey::Sign(std::span<const uint8_t> message) const {
  const DigestContextPtr context(EVP_MD_CTX_new());
  size_t size = 0;
  FL_CHECK(context != nullptr);
  FL_CHECK(EVP_DigestSignInit(context.get(), nullptr, HashOf(type()), nullptr, state_->key.get()) ==
           1);
  FL_CHECK(EVP_DigestSign(context.get(), nullptr, &size, message.data(), message.size()) == 1);
  std::string signature(size, '\0');
  FL_CHECK(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                          message.data(), message.size()) == 1);
  signature.resize(size);
  return signature;
}

}  // namespace fl::base
