#pragma once

/// OpenSSL's objects as owned values, and its errors as Status.

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fl::transport::internal {

template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using BioPtr = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, FreeWith<X509_free>>;
using SslPtr = std::unique_ptr<SSL, FreeWith<SSL_free>>;
using SslContextPtr = std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>>;
using GeneralNamesPtr = std::unique_ptr<GENERAL_NAMES, FreeWith<GENERAL_NAMES_free>>;

/// The oldest error of this thread's queue as text, "" where there is none; empties the queue.
std::string TakeError();

/// Every certificate of `pem`, at least one. kInvalidArgument; `what` names the text in messages.
base::Result<std::vector<X509Ptr>> ReadCertificates(std::string_view pem, std::string_view what);
/// An unencrypted private key. kInvalidArgument.
base::Result<KeyPtr> ReadKey(std::string_view pem, std::string_view what);

/// The common name, or without one the first DNS name; "" where there is neither, or where it has a
/// NUL byte inside (a known trick to make one name look like another).
std::string SubjectName(const X509& certificate);
std::string CommonName(const X509_NAME* name);
/// DNS names and IP addresses of subjectAltName.
std::vector<std::string> AlternativeNames(const X509& certificate);

}  // namespace fl::transport::internal
