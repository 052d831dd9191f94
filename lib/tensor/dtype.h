#pragma once

/// Element types of safetensors files, and conversions between floating types that round once.
/// All functions here are pure and thread-safe. Source and target memory need no alignment.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string_view>

namespace fl::tensor {

/// The dtypes of the safetensors format that are read and written. All are little endian.
enum class DType : uint8_t {
  kBool,    ///< one byte, 0 or 1
  kU8,      ///< unsigned 8 bits
  kI8,      ///< signed 8 bits
  kU16,     ///< unsigned 16 bits
  kI16,     ///< signed 16 bits
  kU32,     ///< unsigned 32 bits
  kI32,     ///< signed 32 bits
  kU64,     ///< unsigned 64 bits
  kI64,     ///< signed 64 bits
  kF8E4M3,  ///< OCP 8-bit float "E4M3FN": largest 448, one NaN for each sign, no infinity
  kF8E5M2,  ///< OCP 8-bit float "E5M2": largest 57344, with infinities
  kF16,     ///< IEEE 754 binary16: largest 65504
  kBF16,    ///< the upper half of binary32
  kF32,     ///< IEEE 754 binary32
  kF64,     ///< IEEE 754 binary64
};

/// Bytes of one element: 1, 2, 4 or 8.
size_t ElementSize(DType dtype);
/// The name in a safetensors header, e.g. "BF16".
std::string_view Name(DType dtype);
/// The dtype with that exact name, if it is one of ours.
std::optional<DType> DTypeFromName(std::string_view name);
/// True for F8, F16, BF16, F32 and F64.
bool IsFloating(DType dtype);
std::ostream& operator<<(std::ostream& out, DType dtype);

/// Nearest value, ties to even, rounded once from binary64 (going through binary32 would round
/// twice). Values past the largest become infinity, as IEEE 754 says; NaN stays NaN.
uint16_t EncodeF16(double value);
uint16_t EncodeBF16(double value);
float DecodeF16(uint16_t bits);
float DecodeBF16(uint16_t bits);

/// Reads `count` elements of a floating `dtype` from `source`; exact.
void DecodeToDouble(DType dtype, const uint8_t* source, size_t count, double* target);
/// The same into F32: exact but for F64, which is rounded to nearest even.
void DecodeToFloat(DType dtype, const uint8_t* source, size_t count, float* target);

/// Writes `count` values as a floating `dtype`, each rounded once to nearest even. Returns the
/// number of them that are not finite in the target type (NaN, infinity, or too large for it);
/// those are written as that type's NaN or infinity.
size_t EncodeFromDouble(DType dtype, const double* source, size_t count, uint8_t* target);
/// The same from F32.
size_t EncodeFromFloat(DType dtype, const float* source, size_t count, uint8_t* target);

/// Number of NaNs and infinities among the whole elements in `bytes`; 0 for integer dtypes. At
/// memory speed for F16, BF16, F32 and F64.
size_t CountNonFinite(DType dtype, std::span<const uint8_t> bytes);
/// Index of the first of them, if any; as fast.
std::optional<size_t> FirstNonFinite(DType dtype, std::span<const uint8_t> bytes);

}  // namespace fl::tensor
