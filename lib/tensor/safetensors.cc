#include "tensor/safetensors.h"

#include "base/check.h"
#include "base/encoding.h"

namespace fl::tensor {

using base::InvalidArgument;
using base::Result;
using base::Status;

Result<SafetensorsFile> SafetensorsFile::Open(const base::Path& path) {
  SafetensorsFile file;
  file.path_ = path;
  FL_ASSIGN_OR_RETURN(file.file_, base::MappedFile::Open(path));
  const std::span<const uint8_t> bytes = file.file_.bytes();
  constexpr size_t kLengthBytes = 8;
  if (bytes.size() < kLengthBytes) {
    return InvalidArgument(path.string() + ": a file of " + std::to_string(bytes.size()) +
                               " bytes holds no header length",
                           "is this a safetensors file, and whole?");
  }
  const Result<uint64_t> length = Header::ParseLength(bytes.first<kLengthBytes>(), bytes.size());
  if (!length.ok()) return length.status().WithContext(path.string());
  Result<Header> header = Header::Parse(base::AsText(bytes.subspan(kLengthBytes, *length)),
                                        bytes.size() - kLengthBytes - *length);
  if (!header.ok()) return header.status().WithContext(path.string());
  file.header_ = *std::move(header);
  return file;
}

Result<std::vector<float>> SafetensorsFile::ReadFloats(std::string_view name) const {
  const TensorInfo* info = header_.Find(name);
  if (info == nullptr) {
    return base::NotFound(path_.string() + ": tensor " + Quote(name) + " is missing");
  }
  if (!IsFloating(info->dtype)) {
    return InvalidArgument(path_.string() + ": tensor " + Quote(name) + " has dtype " +
                           std::string(Name(info->dtype)) + ", not a floating one");
  }
  std::vector<float> values(info->element_count());
  DecodeToFloat(info->dtype, Data(*info).data(), values.size(), values.data());
  return values;
}

Result<SafetensorsWriter> SafetensorsWriter::Create(const base::Path& path,
                                                    const std::vector<TensorSpec>& tensors,
                                                    Header::Metadata metadata, int mode) {
  Result<Header> header = Header::Make(tensors, std::move(metadata));
  if (!header.ok()) return header.status().WithContext(path.string());
  FL_ASSIGN_OR_RETURN(base::FileWriter file,
                      base::FileWriter::Create(path, header->file_size(), mode));
  SafetensorsWriter writer(std::move(file), *std::move(header));
  const std::string text = writer.header_.Serialize();
  FL_RETURN_IF_ERROR(writer.file_.Write(base::AsBytes(text)));
  writer.hash_.Update(base::AsBytes(text));
  return writer;
}

Status SafetensorsWriter::Append(std::span<const uint8_t> bytes) {
  return WriteAt(received_, bytes);
}

Status SafetensorsWriter::WriteAt(uint64_t offset, std::span<const uint8_t> bytes) {
  if (bytes.empty()) return base::OkStatus();
  const uint64_t size = header_.data_size();
  if (offset > size || bytes.size() > size - offset || bytes.size() > size - received_) {
    return InvalidArgument("more bytes than the " + std::to_string(size) +
                           " of the tensors that were declared");
  }
  FL_RETURN_IF_ERROR(file_.WriteAt(header_.data_offset() + offset, bytes));
  received_ += bytes.size();
  if (offset == hashed_) {
    hash_.Update(bytes);
    hashed_ += bytes.size();
  }
  return base::OkStatus();
}

Result<FileSummary> SafetensorsWriter::Commit(bool durable) && {
  if (received_ != header_.data_size()) {
    return InvalidArgument("only " + std::to_string(received_) + " of " +
                           std::to_string(header_.data_size()) + " bytes of tensors were written");
  }
  FileSummary summary;
  summary.size = header_.file_size();
  if (hashed_ == header_.data_size()) {
    summary.digest = std::move(hash_).Finish();
  } else {
    FL_ASSIGN_OR_RETURN(const base::MappedFile written,
                        base::MappedFile::Open(file_.temporary_path()));
    FL_CHECK(written.size() >= summary.size);
    summary.digest = base::Digest::Of(written.bytes().first(summary.size));
  }
  FL_RETURN_IF_ERROR(std::move(file_).Commit(durable));
  return summary;
}

Tensor Tensor::FromFloats(std::string name, std::vector<uint64_t> shape,
                          std::span<const float> values) {
  Tensor tensor{{std::move(name), DType::kF32, std::move(shape)}, {}};
  const auto* begin = reinterpret_cast<const uint8_t*>(values.data());
  tensor.bytes.assign(begin, begin + values.size_bytes());
  return tensor;
}

Result<FileSummary> WriteSafetensors(const base::Path& path, const std::vector<Tensor>& tensors,
                                     Header::Metadata metadata, bool durable) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) {
    FL_ASSIGN_OR_RETURN(const uint64_t bytes, ByteSize(tensor.spec));
    if (bytes != tensor.bytes.size()) {
      return InvalidArgument("tensor " + Quote(tensor.spec.name) + " of shape " +
                             ShapeToString(tensor.spec.shape) + " needs " + std::to_string(bytes) +
                             " bytes, not " + std::to_string(tensor.bytes.size()));
    }
    specs.push_back(tensor.spec);
  }
  FL_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                      SafetensorsWriter::Create(path, specs, std::move(metadata)));
  for (const Tensor& tensor : tensors) FL_RETURN_IF_ERROR(writer.Append(tensor.bytes));
  return std::move(writer).Commit(durable);
}

Result<std::vector<Tensor>> ReadSafetensors(const base::Path& path) {
  FL_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  std::vector<Tensor> tensors;
  for (const TensorInfo& info : file.header().tensors()) {
    const std::span<const uint8_t> bytes = file.Data(info);
    tensors.push_back({{info.name, info.dtype, info.shape}, {bytes.begin(), bytes.end()}});
  }
  return tensors;
}

}  // namespace fl::tensor
