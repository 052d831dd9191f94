#include "cli/internal/tensor_change.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fl::cli::internal {
namespace {

constexpr size_t kTile = 4096;

template <typename T>
void Widen(const uint8_t* source, size_t count, double* target) {
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, source + i * sizeof(T), sizeof(T));
    target[i] = static_cast<double>(value);
  }
}

void Decode(tensor::DType dtype, const uint8_t* source, size_t count, double* target) {
  switch (dtype) {
    case tensor::DType::kBool:
    case tensor::DType::kU8:
      return Widen<uint8_t>(source, count, target);
    case tensor::DType::kI8:
      return Widen<int8_t>(source, count, target);
    case tensor::DType::kU16:
      return Widen<uint16_t>(source, count, target);
    case tensor::DType::kI16:
      return Widen<int16_t>(source, count, target);
    case tensor::DType::kU32:
      return Widen<uint32_t>(source, count, target);
    case tensor::DType::kI32:
      return Widen<int32_t>(source, count, target);
    case tensor::DType::kU64:
      return Widen<uint64_t>(source, count, target);
    case tensor::DType::kI64:
      return Widen<int64_t>(source, count, target);
    default:
      return tensor::DecodeToDouble(dtype, source, count, target);
  }
}

std::string Signature(const tensor::TensorInfo& info) {
  return std::string(tensor::Name(info.dtype)) + tensor::ShapeToString(info.shape);
}

TensorChange Compare(const tensor::SafetensorsFile& a, const tensor::TensorInfo& in_a,
                     const tensor::SafetensorsFile& b, const tensor::TensorInfo& in_b) {
  TensorChange change{.tensor = in_a.name, .elements = in_a.element_count()};
  if (in_a.dtype != in_b.dtype || in_a.shape != in_b.shape) {
    change.note = Signature(in_a) + " -> " + Signature(in_b);
    return change;
  }
  const size_t size = tensor::ElementSize(in_a.dtype);
  const uint8_t* left = a.Data(in_a).data();
  const uint8_t* right = b.Data(in_b).data();
  double before[kTile];
  double after[kTile];
  double squares = 0;
  double squares_before = 0;
  for (uint64_t done = 0; done < change.elements;) {
    const size_t count = static_cast<size_t>(std::min<uint64_t>(kTile, change.elements - done));
    Decode(in_a.dtype, left + done * size, count, before);
    Decode(in_b.dtype, right + done * size, count, after);
    for (size_t i = 0; i < count; ++i) {
      const double difference = after[i] - before[i];
      if (difference != 0) ++change.changed;
      squares += difference * difference;
      squares_before += before[i] * before[i];
      change.max = std::max(change.max, std::abs(difference));
    }
    done += count;
  }
  change.l2 = std::sqrt(squares);
  if (squares_before > 0) {
    change.relative = change.l2 / std::sqrt(squares_before);
  } else if (squares > 0) {
    change.relative = std::numeric_limits<double>::infinity();
  }
  return change;
}

}  // namespace

std::vector<TensorChange> CompareTensors(const tensor::SafetensorsFile& a,
                                         const tensor::SafetensorsFile& b) {
  std::vector<TensorChange> changes;
  for (const tensor::TensorInfo& in_a : a.header().tensors()) {
    const tensor::TensorInfo* in_b = b.header().Find(in_a.name);
    changes.push_back(in_b != nullptr ? Compare(a, in_a, b, *in_b)
                                      : TensorChange{.tensor = in_a.name,
                                                     .note = "removed",
                                                     .elements = in_a.element_count()});
  }
  for (const tensor::TensorInfo& in_b : b.header().tensors()) {
    if (a.header().Find(in_b.name) != nullptr) continue;
    changes.push_back({.tensor = in_b.name, .note = "added", .elements = in_b.element_count()});
  }
  return changes;
}

}  // namespace fl::cli::internal
