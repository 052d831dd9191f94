#pragma once

#include <string>
#include <string_view>

#include "transport/http.h"

namespace fl::transport {

struct ServeFileOptions {
  std::string content_type = "application/octet-stream";
  /// A strong validator without quotes, e.g. "sha256:…"; "" for none.
  std::string etag;
  /// The bytes under this address never change: caches may keep them for a year.
  bool immutable = false;
};

/// The answer to GET or HEAD of `file`: whole (200), one range (206; RFC 9110 section 14, If-Range
/// respected), 304 where If-None-Match has the etag, 416 for a range past the end. Several ranges
/// at once, or a malformed Range, get the whole file, as the RFC allows.
Response ServeFile(const RequestHead& head, FileBody file, const ServeFileOptions& options);

}  // namespace fl::transport
