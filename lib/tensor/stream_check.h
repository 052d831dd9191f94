#pragma once

/// Checking an update while it arrives, before any of it is used.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "tensor/safetensors.h"

namespace fl::tensor {

/// Takes a safetensors file in chunks of any size and says, as early as it can be known, whether it
/// is well-formed, has the model's tensors, and holds only finite numbers. Keeps the header and a
/// few bytes, never the data. One thread.
class StreamValidator {
 public:
  struct Options {
    /// The model whose names, dtypes and shapes the file must have. Not owned; must outlive the
    /// validator. Null: any well-formed file.
    const Header* model = nullptr;
    /// Size of the whole file where it was announced: a length field past it is refused at once.
    std::optional<uint64_t> file_size;
    /// Refuse NaN and infinities in floating tensors.
    bool require_finite = true;
  };
  explicit StreamValidator(Options options);
  ~StreamValidator();
  StreamValidator(StreamValidator&&) noexcept;
  StreamValidator& operator=(StreamValidator&&) noexcept;

  /// The next bytes. kInvalidArgument at the first thing that is wrong, with the tensor's name in
  /// the message where it is about one; that error is repeated by every later call.
  base::Status Feed(std::span<const uint8_t> bytes);
  /// No more bytes follow: kInvalidArgument where the file is not complete.
  base::Status Finish();

  /// The tensor that the error is about; empty where it is about none.
  const std::string& failed_tensor() const;
  /// The header, once it was read; else null.
  const Header* header() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fl::tensor
