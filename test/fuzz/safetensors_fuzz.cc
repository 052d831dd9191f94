// The safetensors reader: whatever the bytes, it answers without touching anything outside them;
// what it accepts it can write and read again; and the stream validator, fed the same bytes in
// chunks, comes to the same answer.

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/encoding.h"
#include "tensor/safetensors.h"
#include "tensor/signature.h"
#include "tensor/stream_check.h"

namespace fl::tensor {
namespace {

base::Result<Header> ReadWhole(std::span<const uint8_t> file) {
  if (file.size() < 8) return base::InvalidArgument("too short");
  FL_ASSIGN_OR_RETURN(const uint64_t length, Header::ParseLength(file.first<8>(), file.size()));
  return Header::Parse(base::AsText(file.subspan(8, length)), file.size() - 8 - length);
}

base::Status ReadInChunks(std::span<const uint8_t> file, size_t chunk, bool announce) {
  StreamValidator::Options options;
  options.require_finite = false;
  if (announce) options.file_size = file.size();
  StreamValidator validator(options);
  while (!file.empty()) {
    const size_t size = std::min(chunk, file.size());
    FL_RETURN_IF_ERROR(validator.Feed(file.first(size)));
    file = file.subspan(size);
  }
  return validator.Finish();
}

void Check(std::span<const uint8_t> file) {
  const base::Result<Header> header = ReadWhole(file);
  for (const size_t chunk : {size_t{1} + file.size() % 13, size_t{4096}}) {
    for (const bool announce : {false, true}) {
      FL_CHECK(ReadInChunks(file, chunk, announce).ok() == header.ok());
    }
  }
  if (!header.ok()) return;

  FL_CHECK(header->file_size() == file.size());
  const std::span<const uint8_t> data = file.subspan(header->data_offset());
  for (const TensorInfo& tensor : header->tensors()) {
    FL_CHECK(tensor.end <= data.size());
    const auto bytes = data.subspan(tensor.begin, tensor.byte_size());
    FL_CHECK(CountNonFinite(tensor.dtype, bytes) <= tensor.element_count());
    FL_CHECK(header->Find(tensor.name) == &tensor);
  }
  const std::string text = header->Serialize();
  const base::Result<Header> again =
      Header::Parse(std::string_view(text).substr(8), header->data_size());
  FL_CHECK(again.ok());
  FL_CHECK(CheckSameSignature(*header, *again).ok());
  FL_CHECK(again->metadata() == header->metadata());
  FL_CHECK(again->Serialize() == text);
}

}  // namespace
}  // namespace fl::tensor

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fl::tensor::Check({data, size});
  return 0;
}
