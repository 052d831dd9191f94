#pragma once

/// A built-in network with its parameters in memory.

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "tensor/safetensors.h"
#include "trainer/builtin/aligned.h"
#include "trainer/builtin/kernel.h"

namespace fl::trainer::builtin {

/// Layers and parameters; the views point into it.
class Model {
 public:
  /// Reads a safetensors file. kFailedPrecondition where its tensors are not those of a built-in
  /// network; else as tensor::SafetensorsFile::Open.
  static base::Result<Model> Load(const base::Path& path);
  /// The layers of such a file. kFailedPrecondition names the tensor that does not fit.
  static base::Result<std::vector<Layer>> LayersOf(const tensor::Header& header);

  /// Writes the parameters with the tensors and metadata of the file that was loaded.
  base::Status Save(const base::Path& path) const;

  Network network() const { return {layers_.data(), layers_.size()}; }
  AlignedFloats& parameters() { return parameters_; }
  const AlignedFloats& parameters() const { return parameters_; }
  int64_t features() const { return layers_.front().inputs; }
  int64_t classes() const { return layers_.back().outputs; }

  /// kFailedPrecondition where data of `features` columns with these labels does not fit.
  base::Status CheckFits(const std::string& dataset, int64_t features,
                         std::span<const int32_t> labels) const;

 private:
  tensor::Header header_;
  std::vector<Layer> layers_;
  AlignedFloats parameters_;
};

}  // namespace fl::trainer::builtin
