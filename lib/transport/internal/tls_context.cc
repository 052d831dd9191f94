#include "transport/internal/tls_context.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace fl::transport::internal {
namespace {

constexpr std::array<unsigned char, 9> kAlpn = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

int SelectAlpn(SSL*, const unsigned char** out, unsigned char* out_length, const unsigned char* in,
               unsigned in_length, void*) {
  unsigned char* selected = nullptr;
  if (SSL_select_next_proto(&selected, out_length, kAlpn.data(), kAlpn.size(), in, in_length) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = selected;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

base::Result<SslContextPtr> MakeServerContext(const ServerTls& options) {
  FL_ASSIGN_OR_RETURN(std::vector<X509Ptr> chain,
                      ReadCertificates(options.certificate_pem, "the server's certificate"));
  FL_ASSIGN_OR_RETURN(KeyPtr key, ReadKey(options.key_pem, "the server's private key"));

  SslContextPtr context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const raw = context.get();
  if (raw == nullptr || SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(raw, kCipherSuites) != 1) {
    return base::Internal("cannot set up TLS 1.3: " + TakeError());
  }
  // No resumption: our connections are kept for long, and a ticket key would be one more secret.
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(raw,
                      SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(raw, SelectAlpn, nullptr);
  constexpr std::string_view kSessionContext = "fl-transport";
  SSL_CTX_set_session_id_context(raw,
                                 reinterpret_cast<const unsigned char*>(kSessionContext.data()),
                                 static_cast<unsigned>(kSessionContext.size()));

  if (SSL_CTX_use_certificate(raw, chain.front().get()) != 1) {
    return base::InvalidArgument("the server's certificate cannot be used: " + TakeError());
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(raw, chain[i].get()) != 1) {
      return base::InvalidArgument("the server's certificate chain cannot be used: " + TakeError());
    }
  }
  if (SSL_CTX_use_PrivateKey(raw, key.get()) != 1) {
    return base::InvalidArgument(
        "the server's private key does not belong to its certificate: " + TakeError(),
        "give the key that the certificate was issued for");
  }

  if (options.client_ca_pem.empty()) {
    if (options.require_client_certificate) {
      return base::InvalidArgument(
          "client certificates are required, but no authority to check them is given");
    }
    return context;
  }
  FL_ASSIGN_OR_RETURN(std::vector<X509Ptr> authorities,
                      ReadCertificates(options.client_ca_pem, "the authority for clients"));
  X509_STORE* const store = SSL_CTX_get_cert_store(raw);
  for (const X509Ptr& authority : authorities) {
    if (X509_STORE_add_cert(store, authority.get()) != 1 ||
        SSL_CTX_add_client_CA(raw, authority.get()) != 1) {
      return base::InvalidArgument("the authority for clients cannot be used: " + TakeError());
    }
  }
  SSL_CTX_set_verify(
      raw,
      SSL_VERIFY_PEER | (options.require_client_certificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
      nullptr);
  return context;
}

std::string ExportKeyingMaterial(SSL* ssl) {
  std::string bytes(kTlsExporterBytes, '\0');
  if (SSL_export_keying_material(ssl, reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(),
                                 kTlsExporterLabel.data(), kTlsExporterLabel.size(), nullptr, 0,
                                 0) != 1) {
    TakeError();
    return "";
  }
  return bytes;
}

}  // namespace fl::transport::internal
