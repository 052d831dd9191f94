#pragma once

#include <string_view>

namespace fl::base {

/// Of all programs of the project.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace fl::base
