#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/simulated_clock.h"
#include "base/testing/status_matchers.h"
#include "registry/memory_store.h"
#include "registry/repository.h"
#include "registry/testing/sample.h"

namespace fl::registry {
namespace {

using base::Code;
using base::IsOk;
using base::StatusIs;
using base::VersionNumber;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CollectTest : public ::testing::TestWithParam<StoreCapabilities> {
 protected:
  void SetUp() override {
    base::Result<std::unique_ptr<ModelRepository>> opened =
        ModelRepository::OpenWriter(Store(), {"", "", &clock_});
    ASSERT_THAT(opened, IsOk());
    writer_ = *std::move(opened);
  }
  std::unique_ptr<ContentStore> Store() {
    return std::make_unique<MemoryStore>(content_, GetParam(), clock_);
  }
  std::vector<int64_t> Present() {
    std::vector<int64_t> present;
    const base::Result<std::vector<VersionInfo>> versions = writer_->List();
    for (const VersionInfo& version : versions.value()) {
      if (!version.pruned) present.push_back(version.version.value());
    }
    return present;
  }

  base::SimulatedClock clock_;
  const std::shared_ptr<MemoryRepository> content_ = std::make_shared<MemoryRepository>();
  std::unique_ptr<ModelRepository> writer_;
};

TEST_P(CollectTest, KeepsTheNewestAndWhatIsNeeded) {
  ASSERT_THAT(PublishSamples(*writer_, 20), IsOk());
  ASSERT_THAT(writer_->Promote(VersionNumber(8)), IsOk());
  ASSERT_THAT(writer_->Pin(VersionNumber(5)), IsOk());
  ASSERT_OK_AND_ASSIGN(const TagSnapshot tags, writer_->store().ReadTags());
  ASSERT_THAT(writer_->store().CommitTags({{"production", tags.tags.at("v11")}}, tags.revision),
              IsOk());
  const RetentionPolicy policy{.keep_last = 3, .also_keep = {VersionNumber(1)}};
  ASSERT_OK_AND_ASSIGN(const RetentionReport report, writer_->Collect(policy));
  // Pinned 5, promoted 8 and tagged 11, each with its parent; the base of a running job; the
  // newest.
  EXPECT_THAT(Present(), ElementsAre(1, 4, 5, 7, 8, 10, 11, 17, 18, 19));
  EXPECT_THAT(report.pruned.size(), 10);
  EXPECT_GE(report.blobs, 10 * 4 - 1);  // version 0 has no state
  EXPECT_TRUE(writer_->Verify()->ok());
  for (const int64_t version : Present()) {
    EXPECT_EQ(Text(*writer_->OpenWeights(VersionNumber(version))),
              "weights " + std::to_string(version));
  }
}

TEST_P(CollectTest, PrunedVersionsAreStillKnown) {
  ASSERT_THAT(PublishSamples(*writer_, 5), IsOk());
  ASSERT_OK_AND_ASSIGN(const VersionInfo before, writer_->Get(VersionNumber(1)));
  ASSERT_THAT(writer_->Collect({.keep_last = 1}), IsOk());
  ASSERT_OK_AND_ASSIGN(const VersionInfo after, writer_->Get(VersionNumber(1)));
  EXPECT_TRUE(after.pruned);
  EXPECT_EQ(after.metrics, before.metrics);
  EXPECT_EQ(after.weights, before.weights);
  EXPECT_THAT(writer_->OpenWeights(VersionNumber(1)),
              StatusIs(Code::kFailedPrecondition, HasSubstr("retention")));
  EXPECT_THAT(writer_->OpenState(VersionNumber(1)), StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(writer_->Pin(VersionNumber(1)), StatusIs(Code::kFailedPrecondition));
  EXPECT_EQ(writer_->Verify()->pruned, 3);
  // The numbers go on.
  ASSERT_THAT(PublishSamples(*writer_, 6), IsOk());
  EXPECT_EQ(writer_->Latest()->version, VersionNumber(5));
}

TEST_P(CollectTest, DryRunSaysTheSameAndChangesNothing) {
  ASSERT_THAT(PublishSamples(*writer_, 6), IsOk());
  RetentionPolicy policy{.keep_last = 2, .dry_run = true};
  ASSERT_OK_AND_ASSIGN(const RetentionReport dry, writer_->Collect(policy));
  EXPECT_THAT(Present().size(), 6);
  policy.dry_run = false;
  ASSERT_OK_AND_ASSIGN(const RetentionReport wet, writer_->Collect(policy));
  EXPECT_EQ(dry.pruned, wet.pruned);
  EXPECT_EQ(dry.blobs, wet.blobs);
  EXPECT_EQ(dry.bytes, wet.bytes);
  ASSERT_OK_AND_ASSIGN(const RetentionReport again, writer_->Collect(policy));
  EXPECT_THAT(again.pruned, IsEmpty());
}

TEST_P(CollectTest, BlobsThatAreSharedStay) {
  ASSERT_THAT(PublishSamples(*writer_, 1), IsOk());
  for (int round = 1; round <= 4; ++round) {
    // Nothing was learnt: all versions have one file.
    ASSERT_THAT(writer_->Publish(SampleRequest(*writer_, round, "weights 0")), IsOk());
  }
  ASSERT_THAT(writer_->Collect({.keep_last = 1}), IsOk());
  EXPECT_THAT(Present(), ElementsAre(3, 4));
  EXPECT_EQ(Text(*writer_->OpenWeights(VersionNumber(4))), "weights 0");
}

TEST_P(CollectTest, OrphansGoWhenTheyAreOld) {
  if (!GetParam().list_blobs) GTEST_SKIP() << "not offered";
  ASSERT_THAT(PublishSamples(*writer_, 2), IsOk());
  ASSERT_OK_AND_ASSIGN(const base::Digest orphan, writer_->store().PutBlob("left by a crash"));
  clock_.Advance(std::chrono::hours(23));
  ASSERT_THAT(writer_->Collect({}), IsOk());
  EXPECT_THAT(writer_->store().StatBlob(orphan), IsOk());
  clock_.Advance(std::chrono::hours(1));
  ASSERT_THAT(writer_->Collect({}), IsOk());
  EXPECT_THAT(writer_->store().StatBlob(orphan), StatusIs(Code::kNotFound));
  EXPECT_TRUE(writer_->Verify()->ok());
}

TEST_P(CollectTest, NothingGoesWhileAManifestThatStaysCannotBeRead) {
  ASSERT_THAT(PublishSamples(*writer_, 6), IsOk());
  ASSERT_OK_AND_ASSIGN(const VersionInfo kept, writer_->Get(VersionNumber(5)));
  content_->blobs.at(kept.manifest).bytes += " ";
  const size_t blobs = content_->blobs.size();
  EXPECT_THAT(writer_->Collect({.keep_last = 1}),
              StatusIs(Code::kDataLoss, HasSubstr("nothing was removed")));
  EXPECT_EQ(content_->blobs.size(), blobs);
  EXPECT_EQ(Present().size(), 6);
}

TEST_P(CollectTest, DamagedVersionCanBePruned) {
  ASSERT_THAT(PublishSamples(*writer_, 6), IsOk());
  ASSERT_OK_AND_ASSIGN(const VersionInfo damaged, writer_->Get(VersionNumber(2)));
  content_->blobs.at(damaged.manifest).bytes += " ";
  ASSERT_THAT(writer_->Collect({.keep_last = 1}), IsOk());
  EXPECT_TRUE(writer_->Verify()->ok());
}

TEST_P(CollectTest, KeepingNoneIsRefused) {
  EXPECT_THAT(writer_->Collect({.keep_last = 0}), StatusIs(Code::kInvalidArgument));
}

INSTANTIATE_TEST_SUITE_P(LikeADisk, CollectTest,
                         ::testing::Values(StoreCapabilities{true, true, true, true}));
INSTANTIATE_TEST_SUITE_P(LikeAnOciRegistry, CollectTest,
                         ::testing::Values(StoreCapabilities{false, false, false, true}));

}  // namespace
}  // namespace fl::registry
