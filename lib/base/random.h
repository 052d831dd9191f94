#pragma once

/// Randomness: a source of secure bytes for keys, nonces and cohorts, and a seeded generator for
/// everything that has to come out the same again (initial weights, shuffles, selection by seed).

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace fl::base {

/// A source of random bytes. Thread-safe.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual void Fill(std::span<uint8_t> out) = 0;

  uint64_t Uint64();
  /// Uniform in [0, bound), without bias. bound > 0.
  uint64_t Below(uint64_t bound);
  /// Uniform in [0, 1), 53 bits.
  double Unit();

  /// OpenSSL's generator, seeded by the kernel; aborts where that fails.
  static RandomSource& Secure();
};

/// xoshiro256++ 1.0 (Blackman and Vigna 2019), seeded through splitmix64 from any number of words,
/// so that (seed, round, client) gives a stream of its own. Its sequence is the same on every
/// machine and will never change. Not for secrets. One thread.
class SeededRandom final : public RandomSource {
 public:
  SeededRandom(std::initializer_list<uint64_t> words);

  void Fill(std::span<uint8_t> out) override;
  uint64_t Next();
  /// Standard normal: Marsaglia's polar method (1964), both values used. The same bits everywhere,
  /// since it takes no function of the C library but the square root, which IEEE 754 fixes.
  double Normal();

  /// Fisher–Yates.
  template <typename T>
  void Shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[Below(i)]);
  }

 private:
  std::array<uint64_t, 4> state_;
  double spare_normal_ = 0;
  bool has_spare_ = false;
};

}  // namespace fl::base
