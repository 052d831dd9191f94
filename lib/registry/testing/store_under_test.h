#pragma once

/// Places to keep a repository in, for tests that run on each of them.

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "base/testing/temporary_directory.h"
#include "registry/disk_store.h"
#include "registry/memory_store.h"
#include "registry/store.h"

namespace fl::registry {

/// Opens a store on one place; each call gives another store on the same content.
using StoreOpener = std::function<std::unique_ptr<ContentStore>()>;

struct StoreUnderTest {
  std::string name;
  /// A new, empty place.
  std::function<StoreOpener()> make_place;
};

inline void PrintTo(const StoreUnderTest& store, std::ostream* out) { *out << store.name; }

inline StoreUnderTest DiskUnderTest() {
  return {"Disk", []() -> StoreOpener {
            const auto folder = std::make_shared<base::TemporaryDirectory>();
            return [folder] { return std::make_unique<DiskStore>(*folder / "digits"); };
          }};
}

inline StoreUnderTest MemoryUnderTest(std::string name, StoreCapabilities capabilities) {
  return {std::move(name), [capabilities]() -> StoreOpener {
            const auto content = std::make_shared<MemoryRepository>();
            return [=] { return std::make_unique<MemoryStore>(content, capabilities); };
          }};
}

/// Everything that a folder offers.
inline StoreUnderTest MemoryLikeADisk() {
  return MemoryUnderTest("Memory", {true, true, true, true});
}
/// Tags move one by one, nothing is compared, nothing is listed.
inline StoreUnderTest MemoryLikeAnOciRegistry() {
  return MemoryUnderTest("MemoryLikeAnOciRegistry", {false, false, false, true});
}
/// No lock: writers meet at the index.
inline StoreUnderTest MemoryLikeS3() {
  return MemoryUnderTest("MemoryLikeS3", {true, true, true, false});
}

}  // namespace fl::registry
