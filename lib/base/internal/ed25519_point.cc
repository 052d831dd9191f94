#include "base/internal/ed25519_point.h"

#include <openssl/bn.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/check.h"

namespace fl::base::internal {
namespace {

struct FreeNumber {
  void operator()(BIGNUM* number) const { BN_free(number); }
};
using NumberPtr = std::unique_ptr<BIGNUM, FreeNumber>;

NumberPtr FromHex(const char* hex) {
  BIGNUM* number = nullptr;
  FL_CHECK(BN_hex2bn(&number, hex) > 0);
  return NumberPtr(number);
}

// Little-endian y of the points of order 8 (two), 4, 1 and 2, each with either sign of x.
constexpr std::array<std::array<uint8_t, 32>, 5> kSmallOrder = {{
    {0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4,
     0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6,
     0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05},
    {0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b,
     0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39,
     0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a},
    {0x00},
    {0x01},
    {0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
}};

}  // namespace

bool IsEd25519PublicKey(std::span<const uint8_t> bytes) {
  std::array<uint8_t, 32> y_bytes{};
  if (bytes.size() != y_bytes.size()) return false;
  std::copy(bytes.begin(), bytes.end(), y_bytes.begin());
  y_bytes.back() &= 0x7f;  // the top bit is the sign of x
  if (std::find(kSmallOrder.begin(), kSmallOrder.end(), y_bytes) != kSmallOrder.end()) return false;

  // x² = (y² - 1) / (d y² + 1) has a solution where numerator × denominator is a square: Euler's
  // criterion, ^((p-1)/2) = 1. (0 only for y = ±1, which are of small order.)
  static const NumberPtr p =
      FromHex("7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffed");
  static const NumberPtr d =
      FromHex("52036cee2b6ffe738cc740797779e89800700a4d4141d8ab75eb4dca135978a3");
  static const NumberPtr half =
      FromHex("3ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff6");
  struct FreeContext {
    void operator()(BN_CTX* context) const { BN_CTX_free(context); }
  };
  const std::unique_ptr<BN_CTX, FreeContext> context(BN_CTX_new());
  const NumberPtr y(BN_lebin2bn(y_bytes.data(), y_bytes.size(), nullptr));
  const NumberPtr numerator(BN_new());
  const NumberPtr denominator(BN_new());
  FL_CHECK(context != nullptr && y != nullptr && numerator != nullptr && denominator != nullptr);
  if (BN_cmp(y.get(), p.get()) >= 0) return false;
  FL_CHECK(BN_mod_sqr(numerator.get(), y.get(), p.get(), context.get()) == 1);
  FL_CHECK(BN_mod_mul(denominator.get(), numerator.get(), d.get(), p.get(), context.get()) == 1);
  FL_CHECK(BN_add_word(denominator.get(), 1) == 1 && BN_sub_word(numerator.get(), 1) == 1);
  FL_CHECK(
      BN_mod_mul(numerator.get(), numerator.get(), denominator.get(), p.get(), context.get()) == 1);
  FL_CHECK(BN_mod_exp(numerator.get(), numerator.get(), half.get(), p.get(), context.get()) == 1);
  return BN_is_one(numerator.get()) == 1;
}

}  // namespace fl::base::internal
