#include "registry/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include "base/testing/simulated_clock.h"
#include "base/testing/status_matchers.h"
#include "registry/testing/sample.h"
#include "registry/testing/store_under_test.h"

namespace fl::registry {
namespace {

using base::Code;
using base::IsOk;
using base::IsOkAndHolds;
using base::JobName;
using base::RoundNumber;
using base::StatusIs;
using base::VersionNumber;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

/// What a repository does is the same whatever it is kept in.
class RepositoryTest : public ::testing::TestWithParam<StoreUnderTest> {
 protected:
  void SetUp() override {
    open_ = GetParam().make_place();
    OpenWriter();
  }
  void OpenWriter() {
    writer_.reset();
    base::Result<std::unique_ptr<ModelRepository>> opened =
        ModelRepository::OpenWriter(open_(), {"the test", "fl test", &clock_});
    ASSERT_THAT(opened, IsOk());
    writer_ = *std::move(opened);
  }
  std::unique_ptr<ModelRepository> Reader() {
    base::Result<std::unique_ptr<ModelRepository>> opened = ModelRepository::OpenReader(open_());
    EXPECT_THAT(opened, IsOk());
    return *std::move(opened);
  }
  int64_t Current() { return Reader()->Current()->version.value(); }
  std::vector<std::string> RecordTypes() {
    std::vector<std::string> types;
    const base::Result<std::vector<Record>> records = Reader()->Records();
    for (const Record& record : records.value()) types.push_back(record.type);
    return types;
  }

  base::SimulatedClock clock_;
  StoreOpener open_;
  std::unique_ptr<ModelRepository> writer_;
};

TEST_P(RepositoryTest, EmptyRepositoryHasNothing) {
  const auto reader = Reader();
  EXPECT_THAT(reader->List(), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(reader->Latest(), StatusIs(Code::kNotFound));
  EXPECT_THAT(reader->Current(), StatusIs(Code::kNotFound));
  EXPECT_THAT(reader->PreviousCurrent(), StatusIs(Code::kNotFound));
  EXPECT_THAT(reader->Pinned(), IsOkAndHolds(Eq(std::nullopt)));
  EXPECT_THAT(reader->OpenWeights(VersionNumber(0)), StatusIs(Code::kNotFound));
  EXPECT_TRUE(reader->Verify()->ok());
}

TEST_P(RepositoryTest, PublishedVersionComesBackInFull) {
  ASSERT_THAT(PublishSamples(*writer_, 1), IsOk());
  PublishRequest request = SampleRequest(*writer_, 7, "the weights", "the state");
  request.version = VersionNumber(1);
  request.metrics = {{"accuracy", 0.1}, {"name with \"quotes\"", -1e-300}};
  request.privacy = PrivacySpent{std::numeric_limits<double>::infinity(), 0};
  ASSERT_OK_AND_ASSIGN(const VersionInfo published, writer_->Publish(request));

  const auto reader = Reader();
  ASSERT_OK_AND_ASSIGN(const VersionInfo info, reader->Get(VersionNumber(1)));
  EXPECT_EQ(info.version, VersionNumber(1));
  EXPECT_EQ(info.manifest, published.manifest);
  EXPECT_EQ(info.weights, base::Digest::Of("the weights"));
  EXPECT_EQ(info.weights_size, 11);
  EXPECT_EQ(info.state, base::Digest::Of("the state"));
  EXPECT_EQ(info.state_size, 9);
  EXPECT_EQ(info.parent, request.parent);
  EXPECT_EQ(info.job, JobName("digits"));
  EXPECT_EQ(info.round, RoundNumber(7));
  EXPECT_EQ(info.algorithm, "FedAvg");
  EXPECT_EQ(info.contributors, 10);
  EXPECT_EQ(info.metrics, request.metrics);
  EXPECT_EQ(info.privacy, request.privacy);
  EXPECT_EQ(info.software, "fl test");
  EXPECT_EQ(info.config_digest, request.config_digest);
  EXPECT_EQ(info.created, clock_.Now());
  EXPECT_FALSE(info.pruned);

  ASSERT_OK_AND_ASSIGN(const OpenedBlob weights, reader->OpenWeights(VersionNumber(1)));
  EXPECT_EQ(Text(weights), "the weights");
  ASSERT_OK_AND_ASSIGN(const std::optional<OpenedBlob> state, reader->OpenState(VersionNumber(1)));
  EXPECT_EQ(Text(*state), "the state");
  EXPECT_FALSE(reader->OpenState(VersionNumber(0))->has_value());
  // The staged files were taken, not copied.
  EXPECT_FALSE(std::filesystem::exists(request.weights.path));
  EXPECT_FALSE(std::filesystem::exists(request.state->path));
}

TEST_P(RepositoryTest, FileFromElsewhereIsHashedAndStays) {
  const base::TemporaryDirectory outside;
  ASSERT_THAT(base::WriteFileAtomically(outside / "w", "initial"), IsOk());
  PublishRequest request;
  request.weights.path = outside / "w";
  ASSERT_OK_AND_ASSIGN(const VersionInfo info, writer_->Publish(request));
  EXPECT_EQ(info.weights, base::Digest::Of("initial"));
  EXPECT_EQ(info.weights_size, 7);
  EXPECT_TRUE(std::filesystem::exists(outside / "w"));
  EXPECT_EQ(Text(*Reader()->OpenWeights(VersionNumber(0))), "initial");
}

TEST_P(RepositoryTest, VersionsAreDense) {
  PublishRequest first = SampleRequest(*writer_, 0, "w");
  first.version = VersionNumber(1);
  EXPECT_THAT(writer_->Publish(first),
              StatusIs(Code::kFailedPrecondition, HasSubstr("version 0 comes next")));
  ASSERT_THAT(PublishSamples(*writer_, 3), IsOk());
  PublishRequest gap = SampleRequest(*writer_, 9, "w");
  gap.version = VersionNumber(4);
  EXPECT_THAT(writer_->Publish(gap), StatusIs(Code::kFailedPrecondition));
  gap.version = VersionNumber(-1);
  EXPECT_THAT(writer_->Publish(gap), StatusIs(Code::kInvalidArgument));
  EXPECT_EQ(Reader()->List()->size(), 3);
}

TEST_P(RepositoryTest, PublishingTheSameAgainIsANoOp) {
  ASSERT_THAT(PublishSamples(*writer_, 3), IsOk());
  ASSERT_OK_AND_ASSIGN(const VersionInfo before, writer_->Latest());
  clock_.Advance(std::chrono::hours(1));
  for (const auto& version : {std::optional(VersionNumber(2)), std::optional<VersionNumber>()}) {
    OpenWriter();
    PublishRequest again = SampleRequest(*writer_, 2, "weights 2", "state 2");
    again.parent = before.parent;
    again.version = version;
    ASSERT_OK_AND_ASSIGN(const VersionInfo info, writer_->Publish(again));
    EXPECT_EQ(info.manifest, before.manifest);
    EXPECT_FALSE(std::filesystem::exists(again.weights.path));
    EXPECT_EQ(Reader()->List()->size(), 3);
  }
}

TEST_P(RepositoryTest, AnotherVersionOfThatNumberIsRefused) {
  ASSERT_THAT(PublishSamples(*writer_, 3), IsOk());
  PublishRequest other = SampleRequest(*writer_, 2, "other weights", "state 2");
  other.version = VersionNumber(2);
  EXPECT_THAT(writer_->Publish(other), StatusIs(Code::kAlreadyExists, HasSubstr("version 2")));
  PublishRequest other_state = SampleRequest(*writer_, 2, "weights 2", "other state");
  other_state.version = VersionNumber(2);
  EXPECT_THAT(writer_->Publish(other_state), StatusIs(Code::kAlreadyExists));
  EXPECT_EQ(Text(*Reader()->OpenWeights(VersionNumber(2))), "weights 2");
}

TEST_P(RepositoryTest, RoundThatChangedNothingIsAVersionToo) {
  ASSERT_THAT(PublishSamples(*writer_, 2), IsOk());
  ASSERT_OK_AND_ASSIGN(const VersionInfo same,
                       writer_->Publish(SampleRequest(*writer_, 2, "weights 1", "state 1")));
  EXPECT_EQ(same.version, VersionNumber(2));
  EXPECT_EQ(same.weights, writer_->Get(VersionNumber(1))->weights);
  EXPECT_TRUE(Reader()->Verify()->ok());
}

TEST_P(RepositoryTest, BadRequestsAreRefusedAndChangeNothing) {
  ASSERT_THAT(PublishSamples(*writer_, 2), IsOk());
  const auto expect_refused = [&](Code code, const std::string& message, auto change) {
    PublishRequest request = SampleRequest(*writer_, 2, "w", "s");
    change(request);
    EXPECT_THAT(writer_->Publish(request), StatusIs(code, HasSubstr(message)));
    EXPECT_EQ(Reader()->List()->size(), 2);
  };
  expect_refused(Code::kInvalidArgument, "\"loss\"",
                 [](PublishRequest& r) { r.metrics["loss"] = std::nan(""); });
  expect_refused(Code::kInvalidArgument, "\"loss\"",
                 [](PublishRequest& r) { r.metrics["loss"] = HUGE_VAL; });
  expect_refused(Code::kInvalidArgument, "privacy",
                 [](PublishRequest& r) { r.privacy = PrivacySpent{std::nan(""), 1e-5}; });
  expect_refused(Code::kInvalidArgument, "privacy",
                 [](PublishRequest& r) { r.privacy = PrivacySpent{1, 1}; });
  expect_refused(Code::kInvalidArgument, "contributors",
                 [](PublishRequest& r) { r.contributors = -1; });
  expect_refused(Code::kInvalidArgument, "1 bytes", [](PublishRequest& r) { r.weights.size = 2; });
  expect_refused(Code::kNotFound, "none",
                 [](PublishRequest& r) { r.weights = {base::Path("/none"), std::nullopt, 0}; });
  expect_refused(Code::kFailedPrecondition, "parent", [](PublishRequest& r) {
    r.parent = VersionRef{VersionNumber(1), base::Digest::Of("another")};
  });
  expect_refused(Code::kFailedPrecondition, "parent", [](PublishRequest& r) {
    r.parent = VersionRef{VersionNumber(5), r.parent->manifest};
  });
}

TEST_P(RepositoryTest, VersionsAreFoundByName) {
  ASSERT_THAT(PublishSamples(*writer_, 12), IsOk());
  ASSERT_THAT(writer_->Promote(VersionNumber(3)), IsOk());
  ASSERT_THAT(writer_->Pin(VersionNumber(3)), IsOk());
  const auto reader = Reader();
  const auto number = [&](std::string_view name) { return reader->Get(name)->version.value(); };
  EXPECT_EQ(number("v0"), 0);
  EXPECT_EQ(number("v11"), 11);
  EXPECT_EQ(number("10"), 10);
  EXPECT_EQ(number("latest"), 11);
  EXPECT_EQ(number("pinned"), 3);
  EXPECT_EQ(number("promoted"), 3);
  EXPECT_EQ(number("current"), 3);
  for (const std::string_view name : {"", "v", "v12", "v-1", "v01", "12", "v1x", "records", "V1"}) {
    EXPECT_THAT(reader->Get(name), StatusIs(Code::kNotFound)) << name;
  }
}

TEST_P(RepositoryTest, CurrentIsPinnedElsePromotedElseLatest) {
  ASSERT_THAT(PublishSamples(*writer_, 4), IsOk());
  EXPECT_EQ(Current(), 3);
  EXPECT_THAT(writer_->Promote(VersionNumber(2)), IsOkAndHolds(Change::kMade));
  EXPECT_EQ(Current(), 2);
  EXPECT_THAT(writer_->Pin(VersionNumber(1)), IsOkAndHolds(Change::kMade));
  EXPECT_EQ(Current(), 1);
  ASSERT_THAT(PublishSamples(*writer_, 5), IsOk());
  EXPECT_EQ(Current(), 1);
  EXPECT_THAT(writer_->Unpin(), IsOkAndHolds(Change::kMade));
  EXPECT_EQ(Current(), 2);
  EXPECT_THAT(writer_->Unpin(), IsOkAndHolds(Change::kAlreadySo));
  EXPECT_THAT(Reader()->Promoted(), IsOkAndHolds(Optional(VersionNumber(2))));
}

TEST_P(RepositoryTest, WhatIsAlreadySoIsNotRecordedAgain) {
  ASSERT_THAT(PublishSamples(*writer_, 2), IsOk());
  EXPECT_THAT(writer_->Pin(VersionNumber(0)), IsOkAndHolds(Change::kMade));
  EXPECT_THAT(writer_->Pin(VersionNumber(0)), IsOkAndHolds(Change::kAlreadySo));
  EXPECT_THAT(writer_->Promote(VersionNumber(0)), IsOkAndHolds(Change::kMade));
  EXPECT_THAT(writer_->Promote(VersionNumber(0)), IsOkAndHolds(Change::kAlreadySo));
  EXPECT_THAT(RecordTypes(), ElementsAre("published", "published", "pinned", "promoted"));
}

TEST_P(RepositoryTest, PromotionWhilePinnedElsewhereIsRefused) {
  ASSERT_THAT(PublishSamples(*writer_, 3), IsOk());
  ASSERT_THAT(writer_->Pin(VersionNumber(1)), IsOk());
  EXPECT_THAT(writer_->Promote(VersionNumber(2)),
              StatusIs(Code::kFailedPrecondition, HasSubstr("version 1 is pinned")));
  EXPECT_THAT(writer_->Promote(VersionNumber(1)), IsOk());
  ASSERT_THAT(writer_->Unpin(), IsOk());
  EXPECT_THAT(writer_->Promote(VersionNumber(2)), IsOk());
}

TEST_P(RepositoryTest, OnlyVersionsThatAreThereArePinned) {
  ASSERT_THAT(PublishSamples(*writer_, 2), IsOk());
  EXPECT_THAT(writer_->Pin(VersionNumber(2)), StatusIs(Code::kNotFound));
  EXPECT_THAT(writer_->Promote(VersionNumber(-1)), StatusIs(Code::kNotFound));
  ASSERT_OK_AND_ASSIGN(const VersionInfo version, writer_->Get(VersionNumber(0)));
  ASSERT_THAT(writer_->store().DeleteBlob(version.weights), IsOk());
  EXPECT_THAT(writer_->Pin(VersionNumber(0)), StatusIs(Code::kDataLoss, HasSubstr("weights")));
  EXPECT_EQ(Current(), 1);
}

TEST_P(RepositoryTest, PreviousCurrentIsWhatARollbackReturnsTo) {
  ASSERT_THAT(PublishSamples(*writer_, 4), IsOk());
  const auto previous = [&] { return Reader()->PreviousCurrent()->version.value(); };
  EXPECT_EQ(previous(), 2);
  ASSERT_THAT(writer_->Pin(VersionNumber(2)), IsOk());
  EXPECT_EQ(previous(), 3);
  ASSERT_THAT(writer_->Unpin(), IsOk());
  ASSERT_THAT(writer_->Promote(VersionNumber(0)), IsOk());
  EXPECT_EQ(previous(), 3);
}

TEST_P(RepositoryTest, FinishedJobsAreRemembered) {
  const FinishedJob job{JobName("digits"), base::Digest::Of("spec"), "Succeeded",
                        "RoundsCompleted", VersionNumber(0),         {}};
  ASSERT_THAT(PublishSamples(*writer_, 1), IsOk());
  EXPECT_THAT(Reader()->FindFinishedJob(JobName("digits")), IsOkAndHolds(Eq(std::nullopt)));
  EXPECT_THAT(writer_->RecordJobFinished(job), IsOkAndHolds(Change::kMade));
  EXPECT_THAT(writer_->RecordJobFinished(job), IsOkAndHolds(Change::kAlreadySo));
  ASSERT_OK_AND_ASSIGN(std::optional<FinishedJob> found,
                       Reader()->FindFinishedJob(JobName("digits")));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->config_digest, job.config_digest);
  EXPECT_EQ(found->outcome, "Succeeded");
  EXPECT_EQ(found->reason, "RoundsCompleted");
  EXPECT_EQ(found->version, VersionNumber(0));
  EXPECT_EQ(found->time, clock_.Now());

  FinishedJob retried = job;
  retried.outcome = "Failed";
  EXPECT_THAT(writer_->RecordJobFinished(retried), IsOkAndHolds(Change::kMade));
  OpenWriter();
  EXPECT_EQ(writer_->FindFinishedJob(JobName("digits"))->value().outcome, "Failed");
  EXPECT_THAT(writer_->FindFinishedJob(JobName("other")), IsOkAndHolds(Eq(std::nullopt)));
}

TEST_P(RepositoryTest, RecordsFormAChainOverManyLayers) {
  // More than two layers of records, with openings at both sides of a layer's end.
  ASSERT_THAT(PublishSamples(*writer_, 63), IsOk());
  const auto reader = Reader();
  EXPECT_EQ(reader->List()->size(), 63);
  for (int64_t count = 64; count <= 130; ++count) {
    if (count % 16 == 0) OpenWriter();
    ASSERT_THAT(PublishSamples(*writer_, count), IsOk());
    ASSERT_EQ(reader->List()->size(), count);
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<Record> records, Reader()->Records());
  ASSERT_EQ(records.size(), 130);
  for (size_t i = 1; i < records.size(); ++i) {
    EXPECT_EQ(records[i].sequence, static_cast<int64_t>(i));
    EXPECT_EQ(records[i].previous, records[i - 1].hash);
    EXPECT_EQ(records[i].hash, base::Digest::Of(FormatRecord(records[i])));
  }
  ASSERT_OK_AND_ASSIGN(const VerifyReport report, Reader()->Verify());
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.versions, 130);
  EXPECT_EQ(report.records, 130);
}

TEST_P(RepositoryTest, ReaderMayNotWrite) {
  ASSERT_THAT(PublishSamples(*writer_, 1), IsOk());
  const auto reader = Reader();
  EXPECT_THAT(reader->Publish(SampleRequest(*writer_, 1, "w")),
              StatusIs(Code::kFailedPrecondition, HasSubstr("reading")));
  EXPECT_THAT(reader->Pin(VersionNumber(0)), StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(reader->Unpin(), StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(reader->Collect({}), StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(reader->StagingPath("w"), StatusIs(Code::kFailedPrecondition));
}

TEST_P(RepositoryTest, StagingNamesAreNames) {
  for (const std::string_view name : {"", ".", "..", "a/b", "/etc/passwd", ".hidden"}) {
    EXPECT_THAT(writer_->StagingPath(name), StatusIs(Code::kInvalidArgument)) << name;
  }
}

TEST_P(RepositoryTest, SecondWriterIsTold) {
  if (!open_()->Capabilities().exclusive_hold) GTEST_SKIP() << "not offered";
  EXPECT_THAT(ModelRepository::OpenWriter(open_(), {"another", "", &clock_}),
              StatusIs(Code::kFailedPrecondition, HasSubstr("the test")));
}

TEST_P(RepositoryTest, ForeignTagsAreKeptAndFound) {
  ASSERT_THAT(PublishSamples(*writer_, 2), IsOk());
  ContentStore& store = writer_->store();
  ASSERT_OK_AND_ASSIGN(const TagSnapshot tags, store.ReadTags());
  ASSERT_THAT(store.CommitTags({{"production", tags.tags.at("v0")}}, tags.revision), IsOk());
  ASSERT_THAT(PublishSamples(*writer_, 3), IsOk());
  EXPECT_EQ(Reader()->Get("production")->version, VersionNumber(0));
  EXPECT_TRUE(Reader()->Verify()->ok());
}

TEST_P(RepositoryTest, ReadersSeeWholeVersionsWhileAWriterWorks) {
  ASSERT_THAT(PublishSamples(*writer_, 1), IsOk());
  constexpr int64_t kVersions = 60;
  const auto read_all = [&](ModelRepository& reader) {
    for (int64_t seen = 0; seen < kVersions;) {
      ASSERT_OK_AND_ASSIGN(const std::vector<VersionInfo> versions, reader.List());
      ASSERT_GE(static_cast<int64_t>(versions.size()), seen);
      seen = static_cast<int64_t>(versions.size());
      for (int64_t i = 0; i < seen; ++i) {
        ASSERT_EQ(versions[static_cast<size_t>(i)].version.value(), i);
      }
      ASSERT_OK_AND_ASSIGN(const OpenedBlob weights, reader.OpenWeights(VersionNumber(seen - 1)));
      ASSERT_EQ(Text(weights), "weights " + std::to_string(seen - 1));
      ASSERT_OK_AND_ASSIGN(const VersionInfo current, reader.Current());
      ASSERT_GE(current.version.value(), seen - 1);
    }
  };
  std::jthread own([&] { read_all(*Reader()); });
  std::jthread shared([&] { read_all(*writer_); });
  for (int64_t count = 2; count <= kVersions; ++count) {
    ASSERT_THAT(PublishSamples(*writer_, count), IsOk());
    if (count % 20 != 0) continue;
    ASSERT_THAT(writer_->Collect({.keep_last = 15}), IsOk());
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, RepositoryTest,
                         ::testing::Values(DiskUnderTest(), MemoryLikeADisk(), MemoryLikeS3(),
                                           MemoryLikeAnOciRegistry()),
                         [](const auto& tested) { return tested.param.name; });

TEST(RepositoryRaceTest, TwoPublishersLoseNothingWhereTheStoreComparesAndSwaps) {
  const StoreOpener place = MemoryLikeS3().make_place();
  constexpr int64_t kEach = 200;
  const auto publish = [&](const std::string& job) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ModelRepository> writer,
                         ModelRepository::OpenWriter(place(), {}));
    for (int64_t round = 1; round <= kEach; ++round) {
      PublishRequest request = SampleRequest(*writer, round, job + " " + std::to_string(round));
      request.job = JobName(job);
      request.parent.reset();
      ASSERT_THAT(writer->Publish(request), IsOk());
    }
  };
  {
    std::jthread a(publish, "a");
    std::jthread b(publish, "b");
  }
  ASSERT_OK_AND_ASSIGN(const auto reader, ModelRepository::OpenReader(place()));
  ASSERT_OK_AND_ASSIGN(const std::vector<VersionInfo> versions, reader->List());
  ASSERT_EQ(versions.size(), 2 * kEach);
  std::set<std::pair<std::string, int64_t>> published;
  for (const VersionInfo& version : versions) {
    published.emplace(version.job.str(), version.round.value());
  }
  EXPECT_EQ(published.size(), 2 * kEach);
  EXPECT_TRUE(reader->Verify()->ok());
}

}  // namespace
}  // namespace fl::registry
