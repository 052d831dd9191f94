#include "transport/internal/openssl.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>
#include <climits>

namespace fl::transport::internal {
namespace {

BioPtr MemoryBio(std::string_view text) {
  if (text.size() > INT_MAX) return nullptr;
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// The text of an ASN.1 string as UTF-8; "" with a NUL byte inside.
std::string Utf8(const ASN1_STRING* string) {
  unsigned char* bytes = nullptr;
  const int length = ASN1_STRING_to_UTF8(&bytes, string);
  if (length < 0) return "";
  std::string text(reinterpret_cast<char*>(bytes), static_cast<size_t>(length));
  OPENSSL_free(bytes);
  if (text.find('\0') != std::string::npos) return "";
  return text;
}

}  // namespace

std::string TakeError() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (error == 0) return "";
  const char* reason = ERR_reason_error_string(error);
  if (reason != nullptr) return reason;
  std::array<char, 256> text{};
  ERR_error_string_n(error, text.data(), text.size());
  return text.data();
}

base::Result<std::vector<X509Ptr>> ReadCertificates(std::string_view pem, std::string_view what) {
  const BioPtr bio = MemoryBio(pem);
  std::vector<X509Ptr> certificates;
  while (X509* one =
             bio == nullptr ? nullptr : PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(one);
  }
  // The end of the text is reported as "no start line"; anything else is damage.
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string error = TakeError();
  if (certificates.empty() || !at_end) {
    return base::InvalidArgument(std::string(what) + " is not a PEM certificate: " + error,
                                 "a certificate starts with -----BEGIN CERTIFICATE-----");
  }
  return certificates;
}

base::Result<KeyPtr> ReadKey(std::string_view pem, std::string_view what) {
  const BioPtr bio = MemoryBio(pem);
  // An encrypted key would ask the terminal for its password: answer with none.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  KeyPtr key(bio == nullptr ? nullptr
                            : PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  if (key == nullptr) {
    return base::InvalidArgument(
        std::string(what) + " is not an unencrypted PEM private key: " + TakeError(),
        "a key starts with -----BEGIN PRIVATE KEY-----");
  }
  return key;
}

std::string CommonName(const X509_NAME* name) {
  const int index = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (index < 0) return "";
  return Utf8(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index)));
}

std::vector<std::string> AlternativeNames(const X509& certificate) {
  std::vector<std::string> names;
  const GeneralNamesPtr list(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; list != nullptr && i < sk_GENERAL_NAME_num(list.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(list.get(), i);
    if (name->type == GEN_DNS) {
      if (std::string text = Utf8(name->d.dNSName); !text.empty()) names.push_back(text);
    } else if (name->type == GEN_IPADD) {
      const unsigned char* bytes = ASN1_STRING_get0_data(name->d.iPAddress);
      const int length = ASN1_STRING_length(name->d.iPAddress);
      std::array<char, INET6_ADDRSTRLEN> text{};
      if ((length == 4 && ::inet_ntop(AF_INET, bytes, text.data(), text.size()) != nullptr) ||
          (length == 16 && ::inet_ntop(AF_INET6, bytes, text.data(), text.size()) != nullptr)) {
        names.emplace_back(text.data());
      }
    }
  }
  return names;
}

std::string SubjectName(const X509& certificate) {
  const X509_NAME* subject = X509_get_subject_name(&certificate);
  if (X509_NAME_get_index_by_NID(subject, NID_commonName, -1) >= 0) return CommonName(subject);
  for (const std::string& name : AlternativeNames(certificate)) {
    in_addr v4{};
    in6_addr v6{};
    const bool is_address = ::inet_pton(AF_INET, name.c_str(), &v4) == 1 ||
                            ::inet_pton(AF_INET6, name.c_str(), &v6) == 1;
    if (!is_address) return name;
  }
  return "";
}

}  // namespace fl::transport::internal
