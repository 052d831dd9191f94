#pragma once

/// Reads the JSON of a safetensors header into what it says, checking the form: keys, types,
/// nesting, names given twice. Whether sizes and ranges agree is for the caller.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/safetensors.h"

namespace fl::tensor::internal {

struct ParsedHeader {
  std::vector<TensorInfo> tensors;  ///< in the order of the JSON
  Header::Metadata metadata;
};

/// kInvalidArgument.
base::Result<ParsedHeader> ParseHeaderJson(std::string_view json);

}  // namespace fl::tensor::internal
