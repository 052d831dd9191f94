// The IDX format of the MNIST files: http://yann.lecun.com/exdb/mnist. Big-endian: two zero bytes,
// the element type (8: unsigned byte), the number of dimensions, each dimension as 32 bits, data.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "trainer/internal/source.h"

namespace fl::trainer::internal {
namespace {

using base::InvalidArgument;
using base::Result;
using base::Status;

/// Reads whole blocks of a file in order, through a buffer.
class IdxFile {
 public:
  /// `dimensions` = 1 for labels, 3 for images.
  static Result<IdxFile> Open(const base::Path& path, int dimensions) {
    IdxFile file;
    file.path_ = path;
    file.fd_ = base::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.fd_.valid()) return base::FromErrno(errno, "open dataset " + path.string());
    struct stat info;
    if (::fstat(file.fd_.get(), &info) != 0) {
      return base::FromErrno(errno, "stat dataset " + path.string());
    }
    const size_t header_size = 4 + 4 * static_cast<size_t>(dimensions);
    std::array<uint8_t, 16> header{};
    FL_RETURN_IF_ERROR(file.ReadAt(0, {header.data(), header_size}));
    if (header[0] != 0 || header[1] != 0 || header[2] != 8 || header[3] != dimensions) {
      return InvalidArgument(path.string() + ": not an IDX file of bytes with " +
                             std::to_string(dimensions) + " dimension(s)");
    }
    uint64_t row_bytes = 1;
    for (int d = 0; d < dimensions; ++d) {
      uint64_t extent = 0;
      for (size_t i = 0; i < 4; ++i) {
        extent = extent << 8 | header[4 + 4 * static_cast<size_t>(d) + i];
      }
      if (d == 0) {
        file.rows_ = static_cast<int64_t>(extent);
      } else if (__builtin_mul_overflow(row_bytes, extent, &row_bytes)) {
        row_bytes = UINT64_MAX;
      }
    }
    uint64_t total = 0;
    if (row_bytes == 0 || row_bytes > kMaxRowBytes ||
        __builtin_mul_overflow(row_bytes, static_cast<uint64_t>(file.rows_), &total) ||
        total + header_size != static_cast<uint64_t>(info.st_size)) {
      return InvalidArgument(path.string() + ": " + std::to_string(info.st_size) +
                             " bytes do not match the sizes in its header");
    }
    file.row_bytes_ = static_cast<size_t>(row_bytes);
    file.data_offset_ = header_size;
    return file;
  }

  int64_t rows() const { return rows_; }
  size_t row_bytes() const { return row_bytes_; }

  Result<std::span<const uint8_t>> Row(int64_t row) {
    const uint64_t offset = static_cast<uint64_t>(row) * row_bytes_;
    if (offset < buffer_offset_ || offset + row_bytes_ > buffer_offset_ + buffer_.size()) {
      const uint64_t left = static_cast<uint64_t>(rows_) * row_bytes_ - offset;
      buffer_.resize(static_cast<size_t>(
          std::min<uint64_t>(left, std::max<uint64_t>(kBufferBytes, row_bytes_))));
      buffer_offset_ = offset;
      FL_RETURN_IF_ERROR(ReadAt(data_offset_ + offset, buffer_));
    }
    return std::span<const uint8_t>(buffer_).subspan(offset - buffer_offset_, row_bytes_);
  }

 private:
  static constexpr uint64_t kMaxRowBytes = uint64_t{1} << 26;
  static constexpr uint64_t kBufferBytes = uint64_t{128} << 10;

  Status ReadAt(uint64_t offset, std::span<uint8_t> target) {
    while (!target.empty()) {
      const ssize_t count =
          ::pread(fd_.get(), target.data(), target.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return base::FromErrno(errno, "read dataset " + path_.string());
      if (count == 0) return InvalidArgument(path_.string() + ": ends too early");
      target = target.subspan(static_cast<size_t>(count));
      offset += static_cast<uint64_t>(count);
    }
    return base::OkStatus();
  }

  base::Path path_;
  base::UniqueFd fd_;
  int64_t rows_ = 0;
  size_t row_bytes_ = 0;
  uint64_t data_offset_ = 0;
  std::vector<uint8_t> buffer_;
  uint64_t buffer_offset_ = 0;
};

class IdxSource final : public RowSource {
 public:
  IdxSource(IdxFile images, IdxFile labels)
      : images_(std::move(images)), labels_(std::move(labels)) {}

  int64_t features() const override { return static_cast<int64_t>(images_.row_bytes()); }

  Result<bool> Next() override {
    if (row_ + 1 >= labels_.rows()) return false;
    ++row_;
    FL_ASSIGN_OR_RETURN(const std::span<const uint8_t> label, labels_.Row(row_));
    label_ = label[0];
    return true;
  }

  int32_t label() const override { return label_; }

  Status ReadValues(float* target) override {
    FL_ASSIGN_OR_RETURN(const std::span<const uint8_t> pixels, images_.Row(row_));
    for (const uint8_t pixel : pixels) *target++ = static_cast<float>(pixel) / 255.0F;
    return base::OkStatus();
  }

 private:
  IdxFile images_;
  IdxFile labels_;
  int64_t row_ = -1;
  int32_t label_ = 0;
};

}  // namespace

Result<std::unique_ptr<RowSource>> OpenIdx(const DatasetSpec& spec, Split default_split) {
  const auto exists = [&spec](const std::string& name) {
    std::error_code ignored;
    return std::filesystem::exists(spec.path / name, ignored);
  };
  const auto images_of = [](Split split) {
    return std::string(split == Split::kTrain ? "train" : "t10k") + "-images-idx3-ubyte";
  };
  const auto labels_of = [](Split split) {
    return std::string(split == Split::kTrain ? "train" : "t10k") + "-labels-idx1-ubyte";
  };
  Split split = spec.split.value_or(default_split);
  const Split other = split == Split::kTrain ? Split::kTest : Split::kTrain;
  if (!spec.split && !exists(images_of(split)) && exists(images_of(other))) split = other;
  if (!exists(images_of(split)) && exists(images_of(split) + ".gz")) {
    return InvalidArgument((spec.path / (images_of(split) + ".gz")).string() + " is compressed",
                           "gunzip the files of this folder");
  }
  if (!exists(images_of(split))) {
    return base::NotFound("no IDX files in folder " + spec.path.string(),
                          "it needs " + images_of(split) + " and " + labels_of(split));
  }
  FL_ASSIGN_OR_RETURN(IdxFile images, IdxFile::Open(spec.path / images_of(split), 3));
  FL_ASSIGN_OR_RETURN(IdxFile labels, IdxFile::Open(spec.path / labels_of(split), 1));
  if (images.rows() != labels.rows()) {
    return InvalidArgument(spec.path.string() + ": " + std::to_string(images.rows()) +
                           " images and " + std::to_string(labels.rows()) + " labels");
  }
  return std::unique_ptr<RowSource>(
      std::make_unique<IdxSource>(std::move(images), std::move(labels)));
}

}  // namespace fl::trainer::internal
