#pragma once

/// A private certificate authority, and a look into certificates: what `fl run` and the operator
/// need for TLS among our own programs. Values; keys are P-256, texts are PEM.

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace fl::transport {

inline constexpr base::Duration kDay = std::chrono::hours(24);

/// A certificate and its private key (PKCS8), as PEM.
struct CertificateAndKey {
  std::string certificate_pem;
  std::string key_pem;
};

/// Signs certificates. Immutable after it is made; any thread.
class CertificateAuthority {
 public:
  /// A new, self-signed authority, valid from `clock`'s now (less an hour, for clocks that differ).
  static base::Result<CertificateAuthority> Create(std::string_view common_name,
                                                   const base::Clock& clock,
                                                   base::Duration validity = 3650 * kDay);
  /// One made before. kInvalidArgument where the texts are malformed, are not an authority, or do
  /// not belong together.
  static base::Result<CertificateAuthority> Load(std::string_view certificate_pem,
                                                 std::string_view key_pem);

  const std::string& certificate_pem() const { return own_.certificate_pem; }
  const std::string& key_pem() const { return own_.key_pem; }

  /// A server's certificate for `hosts`: DNS names (with "*." at the front if need be) and IP
  /// addresses. kInvalidArgument for an empty list or a malformed name.
  base::Result<CertificateAndKey> IssueServer(const std::vector<std::string>& hosts,
                                              const base::Clock& clock,
                                              base::Duration validity = 397 * kDay) const;
  /// A client's certificate, for `name`: as the common name where it fits (64 bytes), and as a DNS
  /// name. kInvalidArgument where `name` is no DNS name.
  base::Result<CertificateAndKey> IssueClient(std::string_view name, const base::Clock& clock,
                                              base::Duration validity = 397 * kDay) const;

 private:
  explicit CertificateAuthority(CertificateAndKey own) : own_(std::move(own)) {}
  CertificateAndKey own_;
};

struct CertificateInfo {
  std::string common_name;  ///< of the subject; "" where it has none
  std::string issuer_common_name;
  std::vector<std::string> hosts;  ///< DNS names and IP addresses it is for
  base::Time not_before;
  base::Time not_after;
  bool is_authority = false;
  std::string sha256_fingerprint;  ///< 64 hex digits
};

/// The first certificate of `pem`. kInvalidArgument.
base::Result<CertificateInfo> InspectCertificate(std::string_view pem);

/// OK where `pair` can serve now: well-formed, key belongs to certificate, within its validity
/// (kInvalidArgument, and kFailedPrecondition outside it; the message says until when it was
/// valid).
base::Status CheckCertificate(const CertificateAndKey& pair, base::Time now);

}  // namespace fl::transport
