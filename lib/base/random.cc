#include "base/random.h"

#include <openssl/rand.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace fl::base {
namespace {

class SecureRandom final : public RandomSource {
 public:
  void Fill(std::span<uint8_t> out) override {
    constexpr size_t kStep = size_t{1} << 20;  // OpenSSL counts in int
    for (; !out.empty(); out = out.subspan(std::min(out.size(), kStep))) {
      const auto step = static_cast<int>(std::min(out.size(), kStep));
      FL_CHECK(RAND_bytes(out.data(), step) == 1);
    }
  }
};

uint64_t SplitMix(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// The natural logarithm of x > 0 to within some units of the last place, from operations that round
// the same way everywhere: log(m 2^e) = e log 2 + 2 artanh((m-1)/(m+1)), m in [sqrt(1/2), sqrt(2)).
double PortableLog(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < std::numbers::sqrt2 / 2) {
    mantissa *= 2;
    --exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;  // terms past it: below 2^-60
  return exponent * std::numbers::ln2 + 2 * s * sum;
}

}  // namespace

RandomSource& RandomSource::Secure() {
  static SecureRandom source;
  return source;
}

uint64_t RandomSource::Uint64() {
  std::array<uint8_t, 8> bytes;
  Fill(bytes);
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t{bytes[i]} << (8 * i);
  return value;
}

uint64_t RandomSource::Below(uint64_t bound) {
  FL_CHECK(bound > 0);
  // Rejects the values past the last whole multiple of `bound`.
  const uint64_t limit = UINT64_MAX - (UINT64_MAX % bound + 1) % bound;
  uint64_t value = Uint64();
  while (value > limit) value = Uint64();
  return value % bound;
}

double RandomSource::Unit() { return static_cast<double>(Uint64() >> 11) * 0x1.0p-53; }

SeededRandom::SeededRandom(std::initializer_list<uint64_t> words) {
  uint64_t mix = 0;
  for (uint64_t word : words) {
    mix ^= word;
    mix = SplitMix(mix);
  }
  for (uint64_t& word : state_) word = SplitMix(mix);
}

uint64_t SeededRandom::Next() {
  const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

void SeededRandom::Fill(std::span<uint8_t> out) {
  for (size_t i = 0; i < out.size(); i += 8) {
    uint64_t word = Next();
    for (size_t j = i; j < std::min(i + 8, out.size()); ++j, word >>= 8) {
      out[j] = static_cast<uint8_t>(word);
    }
  }
}

double SeededRandom::Normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  double u = 0;
  double v = 0;
  double square = 0;
  do {
    u = 2 * Unit() - 1;
    v = 2 * Unit() - 1;
    square = u * u + v * v;
  } while (square >= 1 || square == 0);
  const double factor = std::sqrt(-2 * PortableLog(square) / square);
  spare_normal_ = v * factor;
  has_spare_ = true;
  return u * factor;
}

}  // namespace fl::base
