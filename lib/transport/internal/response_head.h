#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "transport/http.h"

namespace fl::transport::internal {

/// Bytes of the body, whatever it is.
uint64_t BodyLength(const Response& response);

/// The status line and the fields, with Date, Content-Length (but for 204 and 304) and Connection
/// added, up to the empty line. Fields that would break the framing are left out.
std::string ResponseHead(const Response& response, bool keep_alive, base::Time now);

}  // namespace fl::transport::internal
