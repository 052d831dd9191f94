#pragma once

#include "base/status.h"
#include "transport/internal/openssl.h"
#include "transport/server.h"

namespace fl::transport::internal {

/// AES-128-GCM first: the fastest where the processor has AES instructions, and strong enough.
inline constexpr const char* kCipherSuites =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

/// The server's side of TLS 1.3. kInvalidArgument where a text is malformed or the key is not the
/// certificate's.
base::Result<SslContextPtr> MakeServerContext(const ServerTls& options);

/// kTlsExporterBytes that only the two ends of the connection know; "" where it is not established.
std::string ExportKeyingMaterial(SSL* ssl);

}  // namespace fl::transport::internal
