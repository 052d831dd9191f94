#include "transport/certificates.h"

#include <arpa/inet.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/encoding.h"
#include "base/random.h"
#include "transport/internal/openssl.h"

namespace fl::transport {
namespace {

using internal::BioPtr;
using internal::FreeWith;
using internal::KeyPtr;
using internal::TakeError;
using internal::X509Ptr;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;
using Asn1TimePtr = std::unique_ptr<ASN1_TIME, FreeWith<ASN1_TIME_free>>;

constexpr size_t kLongestCommonName = 64;  // ub-common-name of RFC 5280

std::string TakeText(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string CertificatePem(X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  return TakeText(bio.get());
}

std::string KeyPem(EVP_PKEY* key) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return TakeText(bio.get());
}

std::time_t Seconds(base::Time time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

base::Result<base::Time> FromAsn1(const ASN1_TIME* time) {
  const Asn1TimePtr epoch(ASN1_TIME_set(nullptr, 0));
  int days = 0;
  int seconds = 0;
  if (epoch == nullptr || ASN1_TIME_diff(&days, &seconds, epoch.get(), time) != 1) {
    return base::InvalidArgument("the certificate has a malformed date");
  }
  // A date past the range of nanoseconds (2262) counts as its end.
  const std::chrono::seconds since(int64_t{days} * 86400 + seconds);
  const auto last = std::chrono::duration_cast<std::chrono::seconds>(base::Duration::max());
  return base::Time(std::min(since, last));
}

bool IsAddress(const std::string& host) {
  std::array<uint8_t, 16> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

bool IsDnsName(std::string_view name, bool wildcard_allowed) {
  if (wildcard_allowed && name.substr(0, 2) == "*.") name.remove_prefix(2);
  if (name.empty() || name.size() > 253) return false;
  size_t label = 0;
  for (size_t i = 0; i <= name.size(); ++i) {
    const char c = i < name.size() ? name[i] : '.';
    if (c == '.') {
      if (label == 0 || label > 63 || name[i - 1] == '-') return false;
      label = 0;
      continue;
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && (c != '-' || label == 0)) return false;
    ++label;
  }
  return true;
}

/// What a new certificate says.
struct Request {
  std::string common_name;  ///< "": an empty subject
  std::string alternative_names;
  std::string extended_usage;
  bool is_authority = false;
  base::Duration validity{};
};

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool Fill(X509* certificate, X509* issuer, const Request& request, base::Time now) {
  // 128 random bits with the top one clear: positive, and not to be foreseen.
  std::array<uint8_t, 16> serial{};
  base::RandomSource::Secure().Fill(serial);
  serial[0] &= 0x7f;
  const std::unique_ptr<BIGNUM, FreeWith<BN_free>> number(
      BN_bin2bn(serial.data(), serial.size(), nullptr));
  const base::Time start = now - std::chrono::hours(1);
  if (number == nullptr ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr ||
      X509_set_version(certificate, X509_VERSION_3) != 1 ||
      ASN1_TIME_set(X509_getm_notBefore(certificate), Seconds(start)) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate), Seconds(now + request.validity)) == nullptr) {
    return false;
  }
  if (!request.common_name.empty() &&
      X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName, MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(request.common_name.data()),
                                 static_cast<int>(request.common_name.size()), -1, 0) != 1) {
    return false;
  }
  if (X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) != 1) return false;
  const bool common =
      AddExtension(certificate, issuer, NID_basic_constraints,
                   request.is_authority ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") &&
      AddExtension(
          certificate, issuer, NID_key_usage,
          request.is_authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") &&
      AddExtension(certificate, issuer, NID_subject_key_identifier, "hash") &&
      AddExtension(certificate, issuer, NID_authority_key_identifier, "keyid");
  if (!common) return false;
  if (!request.extended_usage.empty() &&
      !AddExtension(certificate, issuer, NID_ext_key_usage, request.extended_usage)) {
    return false;
  }
  // With an empty subject the alternative name is the identity, and critical (RFC 5280 4.2.1.6).
  const std::string critical = request.common_name.empty() ? "critical," : "";
  return request.alternative_names.empty() ||
         AddExtension(certificate, issuer, NID_subject_alt_name,
                      critical + request.alternative_names);
}

/// A certificate with a new key, signed by `issuer`, or by itself where that is null.
base::Result<CertificateAndKey> Make(const Request& request, const CertificateAndKey* issuer,
                                     base::Time now) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  const X509Ptr certificate(X509_new());
  if (key == nullptr || certificate == nullptr ||
      X509_set_pubkey(certificate.get(), key.get()) != 1) {
    return base::Internal("cannot make a key: " + TakeError());
  }
  std::vector<X509Ptr> issuer_chain;
  KeyPtr issuer_key;
  if (issuer != nullptr) {
    FL_ASSIGN_OR_RETURN(issuer_chain, internal::ReadCertificates(issuer->certificate_pem,
                                                                 "the authority's certificate"));
    FL_ASSIGN_OR_RETURN(issuer_key, internal::ReadKey(issuer->key_pem, "the authority's key"));
  }
  X509* const signer = issuer == nullptr ? certificate.get() : issuer_chain.front().get();
  EVP_PKEY* const signing_key = issuer == nullptr ? key.get() : issuer_key.get();
  if (!Fill(certificate.get(), signer, request, now) ||
      X509_sign(certificate.get(), signing_key, EVP_sha256()) == 0) {
    return base::Internal("cannot make a certificate: " + TakeError());
  }
  return CertificateAndKey{CertificatePem(certificate.get()), KeyPem(key.get())};
}

}  // namespace

base::Result<CertificateAuthority> CertificateAuthority::Create(std::string_view common_name,
                                                                const base::Clock& clock,
                                                                base::Duration validity) {
  if (common_name.empty() || common_name.size() > kLongestCommonName) {
    return base::InvalidArgument("the name of an authority has 1 to 64 bytes");
  }
  Request request;
  request.common_name = std::string(common_name);
  request.is_authority = true;
  request.validity = validity;
  FL_ASSIGN_OR_RETURN(CertificateAndKey own, Make(request, nullptr, clock.Now()));
  return CertificateAuthority(std::move(own));
}

base::Result<CertificateAuthority> CertificateAuthority::Load(std::string_view certificate_pem,
                                                              std::string_view key_pem) {
  FL_ASSIGN_OR_RETURN(const std::vector<X509Ptr> chain,
                      internal::ReadCertificates(certificate_pem, "the authority's certificate"));
  FL_ASSIGN_OR_RETURN(const KeyPtr key, internal::ReadKey(key_pem, "the authority's key"));
  if (X509_check_ca(chain.front().get()) != 1) {
    return base::InvalidArgument("the certificate is not that of an authority (CA:TRUE)");
  }
  if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
    TakeError();
    return base::InvalidArgument("the authority's key does not belong to its certificate");
  }
  return CertificateAuthority({std::string(certificate_pem), std::string(key_pem)});
}

base::Result<CertificateAndKey> CertificateAuthority::IssueServer(
    const std::vector<std::string>& hosts, const base::Clock& clock,
    base::Duration validity) const {
  if (hosts.empty()) return base::InvalidArgument("a server's certificate needs a host name");
  Request request;
  request.extended_usage = "serverAuth";
  request.validity = validity;
  for (const std::string& host : hosts) {
    const bool address = IsAddress(host);
    if (!address && !IsDnsName(host, /*wildcard_allowed=*/true)) {
      return base::InvalidArgument("\"" + host + "\" is neither a DNS name nor an IP address");
    }
    if (!request.alternative_names.empty()) request.alternative_names += ",";
    request.alternative_names += (address ? "IP:" : "DNS:") + host;
  }
  if (hosts.front().size() <= kLongestCommonName) request.common_name = hosts.front();
  return Make(request, &own_, clock.Now());
}

base::Result<CertificateAndKey> CertificateAuthority::IssueClient(std::string_view name,
                                                                  const base::Clock& clock,
                                                                  base::Duration validity) const {
  if (!IsDnsName(name, /*wildcard_allowed=*/false)) {
    return base::InvalidArgument("\"" + std::string(name) + "\" is no DNS name",
                                 "client names are made of letters, digits, '-' and '.'");
  }
  Request request;
  request.extended_usage = "clientAuth";
  request.validity = validity;
  request.alternative_names = "DNS:" + std::string(name);
  if (name.size() <= kLongestCommonName) request.common_name = std::string(name);
  return Make(request, &own_, clock.Now());
}

base::Result<CertificateInfo> InspectCertificate(std::string_view pem) {
  FL_ASSIGN_OR_RETURN(const std::vector<X509Ptr> chain,
                      internal::ReadCertificates(pem, "the text"));
  X509* const certificate = chain.front().get();
  CertificateInfo info;
  info.common_name = internal::CommonName(X509_get_subject_name(certificate));
  info.issuer_common_name = internal::CommonName(X509_get_issuer_name(certificate));
  info.hosts = internal::AlternativeNames(*certificate);
  FL_ASSIGN_OR_RETURN(info.not_before, FromAsn1(X509_get0_notBefore(certificate)));
  FL_ASSIGN_OR_RETURN(info.not_after, FromAsn1(X509_get0_notAfter(certificate)));
  info.is_authority = X509_check_ca(certificate) == 1;
  std::array<uint8_t, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) {
    return base::Internal("cannot hash a certificate: " + TakeError());
  }
  info.sha256_fingerprint = base::HexEncode(std::span(digest).first(size));
  return info;
}

base::Status CheckCertificate(const CertificateAndKey& pair, base::Time now) {
  FL_ASSIGN_OR_RETURN(const std::vector<X509Ptr> chain,
                      internal::ReadCertificates(pair.certificate_pem, "the certificate"));
  FL_ASSIGN_OR_RETURN(const KeyPtr key, internal::ReadKey(pair.key_pem, "the private key"));
  if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
    TakeError();
    return base::InvalidArgument("the private key does not belong to the certificate",
                                 "give the key that the certificate was issued for");
  }
  FL_ASSIGN_OR_RETURN(const CertificateInfo info, InspectCertificate(pair.certificate_pem));
  const std::string name = "the certificate of \"" + info.common_name + "\"";
  if (now < info.not_before) {
    return base::FailedPrecondition(
        name + " is valid only from " + base::FormatTime(info.not_before),
        "check this machine's clock: it says " + base::FormatTime(now));
  }
  if (now > info.not_after) {
    return base::FailedPrecondition(name + " expired at " + base::FormatTime(info.not_after),
                                    "issue a new one");
  }
  return base::OkStatus();
}

}  // namespace fl::transport
