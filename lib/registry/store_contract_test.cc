#include "registry/testing/store_contract.h"

#include "registry/testing/faulty_store.h"

namespace fl::registry {
namespace {

/// The decorator keeps the contract of what it decorates.
StoreUnderTest Decorated(const StoreUnderTest& store) {
  return {"Decorated" + store.name, [store]() -> StoreOpener {
            const auto faults = std::make_shared<Faults>();
            return [open = store.make_place(), faults] {
              return std::make_unique<FaultyStore>(open(), faults);
            };
          }};
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContractTest,
                         ::testing::Values(DiskUnderTest(), MemoryLikeADisk(), MemoryLikeS3(),
                                           MemoryLikeAnOciRegistry(), Decorated(DiskUnderTest())),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace fl::registry
