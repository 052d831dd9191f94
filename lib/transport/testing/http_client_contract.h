#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "transport/client.h"

namespace fl::transport {

/// Makes the client under test; what lives as long as it is the factory's to keep.
using HttpClientFactory = std::function<std::unique_ptr<HttpClient>(const ClientOptions&)>;

/// One promise of HttpClient's header, with gtest's expectations inside.
struct HttpClientCase {
  std::string_view name;
  void (*run)(const HttpClientFactory&);
};

/// What every HttpClient keeps. Each case runs against a real server on loopback.
std::span<const HttpClientCase> HttpClientContract();

}  // namespace fl::transport
