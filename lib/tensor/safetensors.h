#pragma once

/// The safetensors format: a strict reader and a canonical writer. Reading trusts nothing: lengths,
/// offsets, shapes and names are checked against each other and the file's size before anything is
/// allocated or touched.
///
/// Layout: 8 bytes little-endian length N, N bytes of JSON, then the data section. The JSON maps
/// each tensor's name to {"dtype", "shape", "data_offsets": [begin, end)} relative to the data
/// section, and "__metadata__" to a map of strings. Tensors cover the data section without gap or
/// overlap. The data may start at any (also an odd) address: load elements by memcpy.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/digest.h"
#include "base/file.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace fl::tensor {

/// Name, element type and shape: what a tensor is, without where it lies.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<uint64_t> shape;  ///< empty for a scalar; a 0 makes it an empty tensor
};

/// A tensor in a file. `begin` and `end` are byte offsets in the data section.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<uint64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t byte_size() const { return end - begin; }
  uint64_t element_count() const { return byte_size() / ElementSize(dtype); }
};

/// "[2,3]"; "[]" for a scalar.
std::string ShapeToString(const std::vector<uint64_t>& shape);

/// A name from a file for use in a message: in quotes, control characters escaped, cut when long.
std::string Quote(std::string_view name);

/// Bytes of a tensor. kInvalidArgument where the product does not fit 64 bits.
base::Result<uint64_t> ByteSize(const TensorSpec& spec);

/// Where safetensors headers end: longer ones are refused (the reference implementation's limit).
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

/// A header that passed every check. Immutable, copyable.
class Header {
 public:
  using Metadata = std::map<std::string, std::string>;

  /// No tensors, no metadata.
  Header() = default;

  /// Reads the length field: the first 8 bytes of a file. kInvalidArgument where it is 0, 1, past
  /// kMaxHeaderBytes, or (with `file_size`) past the end of the file.
  static base::Result<uint64_t> ParseLength(std::span<const uint8_t, 8> field,
                                            std::optional<uint64_t> file_size = {});
  /// Reads the JSON that follows. kInvalidArgument names the tensor and what is wrong with it.
  /// `data_size` is the size of the data section where it is known: the tensors must fill it.
  static base::Result<Header> Parse(std::string_view json, std::optional<uint64_t> data_size = {});
  /// A header for `tensors` laid out one after another in this order. kInvalidArgument for a name
  /// given twice, the name "__metadata__", text that is not UTF-8, sizes past 64 bits, or more than
  /// kMaxHeaderBytes.
  static base::Result<Header> Make(const std::vector<TensorSpec>& tensors, Metadata metadata = {});

  /// In the order of the data.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const Metadata& metadata() const { return metadata_; }
  /// The tensor of that name, or null.
  const TensorInfo* Find(std::string_view name) const;
  /// Where the data section starts in the file.
  uint64_t data_offset() const { return data_offset_; }
  uint64_t data_size() const { return data_size_; }
  uint64_t file_size() const { return data_offset_ + data_size_; }

  /// The canonical bytes: length field and JSON, "__metadata__" first (left out where empty),
  /// tensors in order, padded with spaces so that the data starts at a multiple of 8. The same
  /// tensors and metadata always give the same bytes.
  std::string Serialize() const;

 private:
  void Index();

  std::vector<TensorInfo> tensors_;
  Metadata metadata_;
  std::unordered_map<std::string, size_t> index_;
  uint64_t data_offset_ = 8;
  uint64_t data_size_ = 0;
};

/// A safetensors file mapped for reading. Any number of threads may read. The file must not be
/// shortened while it is mapped.
class SafetensorsFile {
 public:
  /// kNotFound, kPermissionDenied; kInvalidArgument for a file that is not well-formed, with the
  /// path in the message.
  static base::Result<SafetensorsFile> Open(const base::Path& path);

  const Header& header() const { return header_; }
  const base::Path& path() const { return path_; }
  /// The bytes of a tensor of this file's header. They may lie at any alignment.
  std::span<const uint8_t> Data(const TensorInfo& info) const {
    return file_.bytes().subspan(header_.data_offset() + info.begin, info.byte_size());
  }
  /// All bytes of the file.
  std::span<const uint8_t> bytes() const { return file_.bytes(); }

  /// The elements of the floating tensor `name` as F32 (F64 is rounded). kNotFound where there is
  /// no such tensor, kInvalidArgument where it is not floating.
  base::Result<std::vector<float>> ReadFloats(std::string_view name) const;

 private:
  base::Path path_;
  base::MappedFile file_;
  Header header_;
};

/// What a finished file is known by.
struct FileSummary {
  base::Digest digest;
  uint64_t size = 0;
};

/// Writes a safetensors file in a stream: the tensors are declared first, then their bytes come.
/// The file appears under its name at Commit, whole or not at all. One thread.
class SafetensorsWriter {
 public:
  /// Reserves the space (kResourceExhausted where there is not enough) and writes the header. Other
  /// codes as Header::Make and base::FileWriter.
  static base::Result<SafetensorsWriter> Create(const base::Path& path,
                                                const std::vector<TensorSpec>& tensors,
                                                Header::Metadata metadata = {}, int mode = 0644);

  const Header& header() const { return header_; }
  /// The next bytes of the data section. Crossing from one tensor to the next is fine.
  /// kInvalidArgument where there are more bytes than were declared.
  base::Status Append(std::span<const uint8_t> bytes);
  /// Bytes at `offset` of the data section, in any order, each byte once. Where bytes come out of
  /// order, Commit reads the file again to hash it.
  base::Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes);
  /// Checks that all bytes came (kInvalidArgument), makes the file durable where asked, and gives
  /// it its name.
  base::Result<FileSummary> Commit(bool durable = true) &&;

 private:
  SafetensorsWriter(base::FileWriter file, Header header)
      : file_(std::move(file)), header_(std::move(header)) {}

  base::FileWriter file_;
  Header header_;
  base::Sha256 hash_;
  uint64_t hashed_ = 0;    // bytes of the data section that hash_ has seen, from its start
  uint64_t received_ = 0;  // bytes of the data section that were written
};

/// A tensor and its bytes, for files that fit in memory.
struct Tensor {
  TensorSpec spec;
  std::vector<uint8_t> bytes;  ///< little endian, row-major

  /// An F32 tensor of `values`; their number must be the product of `shape`.
  static Tensor FromFloats(std::string name, std::vector<uint64_t> shape,
                           std::span<const float> values);
};

/// Writes a whole file. kInvalidArgument where bytes and shape disagree, else as SafetensorsWriter.
base::Result<FileSummary> WriteSafetensors(const base::Path& path,
                                           const std::vector<Tensor>& tensors,
                                           Header::Metadata metadata = {}, bool durable = true);
/// Reads a whole file into memory.
base::Result<std::vector<Tensor>> ReadSafetensors(const base::Path& path);

}  // namespace fl::tensor
