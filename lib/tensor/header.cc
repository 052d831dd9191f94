#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tensor/internal/header_parser.h"
#include "tensor/safetensors.h"

namespace fl::tensor {

using base::InvalidArgument;
using base::Result;

namespace {

constexpr size_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

/// Bytes of `shape`, or nothing where they do not fit 64 bits.
std::optional<uint64_t> CheckedByteSize(DType dtype, const std::vector<uint64_t>& shape) {
  // Without elements nothing can be too large, whatever the other dimensions say.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  uint64_t bytes = ElementSize(dtype);
  for (const uint64_t dimension : shape) {
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) return std::nullopt;
  }
  return bytes;
}

std::string TensorText(const std::string& name) { return "tensor " + Quote(name); }

/// nlohmann's text of a string; the library throws where it is not UTF-8.
Result<std::string> JsonString(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    return InvalidArgument(Quote(text) + " is not UTF-8");
  }
}

std::string JsonNumbers(const std::vector<uint64_t>& numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(numbers[i]);
  }
  return text + "]";
}

}  // namespace

std::string ShapeToString(const std::vector<uint64_t>& shape) { return JsonNumbers(shape); }

std::string Quote(std::string_view name) {
  constexpr size_t kLongest = 120;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "\"";
  for (size_t i = 0; i < name.size(); ++i) {
    if (i == kLongest) {
      // Not in the middle of a character.
      while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) {
        text.pop_back();
      }
      if ((static_cast<unsigned char>(text.back()) & 0x80) != 0) text.pop_back();
      return text + "\"… (" + std::to_string(name.size()) + " bytes)";
    }
    const auto byte = static_cast<unsigned char>(name[i]);
    if (byte < 0x20 || byte == 0x7f) {
      text += "\\x";
      text += kHex[byte >> 4];
      text += kHex[byte & 15];
    } else {
      if (byte == '"' || byte == '\\') text += '\\';
      text += name[i];
    }
  }
  return text + "\"";
}

Result<uint64_t> ByteSize(const TensorSpec& spec) {
  const std::optional<uint64_t> bytes = CheckedByteSize(spec.dtype, spec.shape);
  if (!bytes) {
    return InvalidArgument(TensorText(spec.name) + " with shape " + ShapeToString(spec.shape) +
                           " is larger than 64 bits can count");
  }
  return *bytes;
}

Result<uint64_t> Header::ParseLength(std::span<const uint8_t, 8> field,
                                     std::optional<uint64_t> file_size) {
  uint64_t length = 0;
  std::memcpy(&length, field.data(), sizeof(length));
  if (length < 2) {
    return InvalidArgument("the header length is " + std::to_string(length) +
                           ", which holds no header");
  }
  if (length > kMaxHeaderBytes) {
    return InvalidArgument("the header length is " + std::to_string(length) +
                               " bytes, more than the " + std::to_string(kMaxHeaderBytes) +
                               " that are allowed",
                           "is this a safetensors file?");
  }
  if (file_size && (*file_size < kLengthBytes || length > *file_size - kLengthBytes)) {
    return InvalidArgument("the header length is " + std::to_string(length) +
                           " bytes, past the end of a file of " + std::to_string(*file_size));
  }
  return length;
}

Result<Header> Header::Parse(std::string_view json, std::optional<uint64_t> data_size) {
  if (json.size() > kMaxHeaderBytes) {
    return InvalidArgument("the header is longer than " + std::to_string(kMaxHeaderBytes) +
                           " bytes");
  }
  FL_ASSIGN_OR_RETURN(internal::ParsedHeader parsed, internal::ParseHeaderJson(json));
  Header header;
  header.metadata_ = std::move(parsed.metadata);
  header.tensors_ = std::move(parsed.tensors);
  header.data_offset_ = kLengthBytes + json.size();

  for (const TensorInfo& tensor : header.tensors_) {
    const std::string range =
        "[" + std::to_string(tensor.begin) + "," + std::to_string(tensor.end) + "]";
    if (tensor.begin > tensor.end) {
      return InvalidArgument(TensorText(tensor.name) + " has data_offsets " + range +
                             ", which run backwards");
    }
    FL_ASSIGN_OR_RETURN(const uint64_t bytes, ByteSize({tensor.name, tensor.dtype, tensor.shape}));
    if (bytes != tensor.byte_size()) {
      return InvalidArgument(
          TensorText(tensor.name) + " of dtype " + std::string(Name(tensor.dtype)) + " and shape " +
          ShapeToString(tensor.shape) + " needs " + std::to_string(bytes) +
          " bytes, its data_offsets " + range + " hold " + std::to_string(tensor.byte_size()));
    }
    if (data_size && tensor.end > *data_size) {
      return InvalidArgument(TensorText(tensor.name) + " ends at byte " +
                             std::to_string(tensor.end) + " of a data section of " +
                             std::to_string(*data_size));
    }
  }
  std::stable_sort(header.tensors_.begin(), header.tensors_.end(),
                   [](const TensorInfo& a, const TensorInfo& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
                   });
  for (const TensorInfo& tensor : header.tensors_) {
    if (tensor.begin < header.data_size_) {
      return InvalidArgument(TensorText(tensor.name) + " overlaps the tensor before it at byte " +
                             std::to_string(tensor.begin) + " of the data section");
    }
    if (tensor.begin > header.data_size_) {
      return InvalidArgument("there is a gap of " +
                             std::to_string(tensor.begin - header.data_size_) +
                             " bytes in the data section before " + TensorText(tensor.name));
    }
    header.data_size_ = tensor.end;
  }
  if (data_size && header.data_size_ != *data_size) {
    return InvalidArgument(std::to_string(*data_size - header.data_size_) +
                           " bytes follow the last tensor");
  }
  if (header.data_size_ > UINT64_MAX - header.data_offset_) {
    return InvalidArgument("the tensors are larger than 64 bits can count");
  }
  header.Index();
  return header;
}

Result<Header> Header::Make(const std::vector<TensorSpec>& tensors, Metadata metadata) {
  Header header;
  header.metadata_ = std::move(metadata);
  for (const auto& [key, value] : header.metadata_) {
    FL_RETURN_IF_ERROR(JsonString(key).status());
    FL_RETURN_IF_ERROR(JsonString(value).status());
  }
  for (const TensorSpec& spec : tensors) {
    FL_RETURN_IF_ERROR(JsonString(spec.name).status());
    if (spec.name == kMetadataKey) {
      return InvalidArgument("a tensor cannot be named \"__metadata__\"");
    }
    FL_ASSIGN_OR_RETURN(const uint64_t bytes, ByteSize(spec));
    TensorInfo info{spec.name, spec.dtype, spec.shape, header.data_size_, 0};
    if (__builtin_add_overflow(info.begin, bytes, &info.end)) {
      return InvalidArgument("the tensors up to " + Quote(spec.name) +
                             " are larger than 64 bits can count");
    }
    header.data_size_ = info.end;
    header.tensors_.push_back(std::move(info));
  }
  header.Index();
  if (header.index_.size() != tensors.size()) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (header.index_.at(tensors[i].name) != i) {
        return InvalidArgument("two tensors are named " + Quote(tensors[i].name));
      }
    }
  }
  header.data_offset_ = header.Serialize().size();
  if (header.data_offset_ - kLengthBytes > kMaxHeaderBytes) {
    return InvalidArgument("the header of " + std::to_string(tensors.size()) +
                           " tensors is longer than " + std::to_string(kMaxHeaderBytes) + " bytes");
  }
  if (header.data_size_ > UINT64_MAX - header.data_offset_) {
    return InvalidArgument("the tensors are larger than 64 bits can count");
  }
  return header;
}

void Header::Index() {
  index_.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
}

const TensorInfo* Header::Find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

std::string Header::Serialize() const {
  std::string text(kLengthBytes, '\0');
  text += '{';
  if (!metadata_.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata_) {
      text += *JsonString(key) + ":" + *JsonString(value) + ",";
    }
    text.back() = '}';
    text += ',';
  }
  for (const TensorInfo& tensor : tensors_) {
    text += *JsonString(tensor.name) + ":{\"dtype\":\"" + std::string(Name(tensor.dtype)) +
            "\",\"shape\":" + JsonNumbers(tensor.shape) +
            ",\"data_offsets\":" + JsonNumbers({tensor.begin, tensor.end}) + "},";
  }
  if (text.back() == ',') {
    text.back() = '}';
  } else {
    text += '}';
  }
  while (text.size() % 8 != 0) text += ' ';
  const uint64_t length = text.size() - kLengthBytes;
  std::memcpy(text.data(), &length, sizeof(length));
  return text;
}

}  // namespace fl::tensor
