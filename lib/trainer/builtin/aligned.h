#pragma once

/// Memory for the kernels. Vectorised loops treat the elements before the first aligned address one
/// by one, so where a buffer lies would show in the last bits of the result: ours always start at a
/// multiple of 64.

#include <cstddef>
#include <new>
#include <vector>

namespace fl::trainer::builtin {

template <typename T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  AlignedAllocator() = default;
  template <typename U>
  explicit AlignedAllocator(const AlignedAllocator<U>&) {}

  T* allocate(size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
  }
  void deallocate(T* memory, size_t) { ::operator delete(memory, kAlignment); }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

using AlignedFloats = std::vector<float, AlignedAllocator<float>>;

}  // namespace fl::trainer::builtin
