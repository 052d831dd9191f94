#pragma once

/// The contract of ContentStore as a test suite. A test program includes this in one file and names
/// its stores:
///   INSTANTIATE_TEST_SUITE_P(Disk, StoreContractTest, ::testing::Values(DiskUnderTest()));

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"
#include "registry/store.h"
#include "registry/testing/store_under_test.h"

namespace fl::registry {

class StoreContractTest : public ::testing::TestWithParam<StoreUnderTest> {
 protected:
  void SetUp() override {
    open_ = GetParam().make_place();
    store_ = open_();
    base::Result<std::unique_ptr<WriterHold>> hold = store_->HoldForWriting("the test");
    ASSERT_THAT(hold, base::IsOk());
    hold_ = *std::move(hold);
  }

  Descriptor Put(std::string_view bytes) {
    base::Result<Descriptor> put = store_->PutManifest(bytes, "application/x");
    EXPECT_THAT(put, base::IsOk());
    return put.value_or(Descriptor{});
  }
  std::string Revision() {
    base::Result<TagSnapshot> tags = store_->ReadTags();
    EXPECT_THAT(tags, base::IsOk());
    return tags.ok() ? tags->revision : "";
  }
  base::Status Commit(const std::vector<TagChange>& changes) {
    return store_->CommitTags(changes, Revision()).status();
  }
  base::Path WriteOutside(const std::string& name, std::string_view bytes) {
    EXPECT_THAT(base::WriteFileAtomically(outside_ / name, bytes), base::IsOk());
    return outside_ / name;
  }
  base::Path WriteStaged(const std::string& name, std::string_view bytes) {
    base::Result<base::Path> staging = store_->StagingDirectory();
    EXPECT_THAT(staging, base::IsOk());
    const base::Path path = *staging / name;
    EXPECT_THAT(base::WriteFileAtomically(path, bytes), base::IsOk());
    return path;
  }

  StoreOpener open_;
  std::unique_ptr<ContentStore> store_;
  std::unique_ptr<WriterHold> hold_;
  base::TemporaryDirectory outside_;
};

TEST_P(StoreContractTest, NoRepositoryIsNotFound) {
  const StoreOpener open = GetParam().make_place();
  EXPECT_THAT(open()->ReadTags(), base::StatusIs(base::Code::kNotFound));
}

TEST_P(StoreContractTest, BlobsComeBackByDigest) {
  for (const std::string& bytes :
       {std::string(), std::string("a\0b", 3), std::string(100000, 'x')}) {
    ASSERT_OK_AND_ASSIGN(const base::Digest digest, store_->PutBlob(bytes));
    EXPECT_EQ(digest, base::Digest::Of(bytes));
    EXPECT_THAT(store_->PutBlob(bytes), base::IsOkAndHolds(digest));
    EXPECT_THAT(open_()->ReadBlob(digest, bytes.size()), base::IsOkAndHolds(bytes));
    EXPECT_THAT(open_()->StatBlob(digest), base::IsOkAndHolds(bytes.size()));
    ASSERT_OK_AND_ASSIGN(const OpenedBlob opened, open_()->OpenBlob(digest));
    EXPECT_EQ(base::Digest::Of(opened.file.bytes()), digest);
  }
  const base::Digest digest = base::Digest::Of(std::string(100000, 'x'));
  EXPECT_THAT(store_->ReadBlob(digest, 99999), base::StatusIs(base::Code::kOutOfRange));
}

TEST_P(StoreContractTest, MissingBlobIsNotFound) {
  const base::Digest digest = base::Digest::Of("never stored");
  for (const base::Status& status :
       {store_->StatBlob(digest).status(), store_->ReadBlob(digest, 100).status(),
        store_->OpenBlob(digest).status()}) {
    EXPECT_THAT(status,
                base::StatusIs(base::Code::kNotFound, ::testing::HasSubstr(digest.ToString())));
  }
  EXPECT_THAT(store_->DeleteBlob(digest), base::IsOk());
}

TEST_P(StoreContractTest, ManifestIsABlobWithAType) {
  const Descriptor manifest = Put("{}");
  EXPECT_EQ(manifest, (Descriptor{"application/x", base::Digest::Of("{}"), 2}));
  EXPECT_THAT(store_->ReadBlob(manifest.digest, 2), base::IsOkAndHolds(std::string("{}")));
}

TEST_P(StoreContractTest, StagedFileIsConsumedAnyOtherIsCopied) {
  const std::string bytes(3'000'000, 'w');
  const base::Digest digest = base::Digest::Of(bytes);
  const base::Path staged = WriteStaged("w", bytes);
  ASSERT_THAT(store_->PutFile(staged, digest, bytes.size()), base::IsOk());
  EXPECT_FALSE(std::filesystem::exists(staged));
  EXPECT_THAT(store_->ReadBlob(digest, bytes.size()), base::IsOkAndHolds(bytes));

  ASSERT_THAT(store_->DeleteBlob(digest), base::IsOk());
  const base::Path outside = WriteOutside("w", bytes);
  ASSERT_THAT(store_->PutFile(outside, digest, bytes.size()), base::IsOk());
  EXPECT_TRUE(std::filesystem::exists(outside));
  EXPECT_THAT(store_->ReadBlob(digest, bytes.size()), base::IsOkAndHolds(bytes));
}

TEST_P(StoreContractTest, FileThatIsGoneIsFineOnlyIfItsBlobIsThere) {
  const base::Digest digest = base::Digest::Of("bytes");
  const base::Path staged = WriteStaged("w", "bytes");
  ASSERT_THAT(store_->PutFile(staged, digest, 5), base::IsOk());
  EXPECT_THAT(store_->PutFile(staged, digest, 5), base::IsOk());
  EXPECT_THAT(store_->PutFile(staged, base::Digest::Of("other"), 5),
              base::StatusIs(base::Code::kNotFound));
}

TEST_P(StoreContractTest, FileThatIsNotAsSaidIsRefused) {
  const base::Path outside = WriteOutside("w", "bytes");
  EXPECT_THAT(store_->PutFile(outside, base::Digest::Of("bytes"), 6),
              base::StatusIs(base::Code::kInvalidArgument, ::testing::HasSubstr("5 bytes")));
  EXPECT_THAT(store_->PutFile(outside, base::Digest::Of("other"), 5),
              base::StatusIs(base::Code::kDataLoss));
  EXPECT_THAT(store_->StatBlob(base::Digest::Of("other")), base::StatusIs(base::Code::kNotFound));
}

TEST_P(StoreContractTest, OpenedBlobOutlivesItsRemoval) {
  ASSERT_OK_AND_ASSIGN(const base::Digest digest, store_->PutBlob("weights"));
  ASSERT_OK_AND_ASSIGN(const OpenedBlob opened, store_->OpenBlob(digest));
  ASSERT_THAT(store_->DeleteBlob(digest), base::IsOk());
  EXPECT_THAT(store_->OpenBlob(digest), base::StatusIs(base::Code::kNotFound));
  EXPECT_EQ(base::Digest::Of(opened.file.bytes()), digest);
}

TEST_P(StoreContractTest, TagsMoveAndGo) {
  EXPECT_THAT(store_->ReadTags()->tags, ::testing::IsEmpty());
  const Descriptor a = Put("a");
  const Descriptor b = Put("b");
  ASSERT_THAT(Commit({{"v0", a}, {"latest", a}}), base::IsOk());
  ASSERT_THAT(Commit({{"v1", b}, {"latest", b}}), base::IsOk());
  ASSERT_OK_AND_ASSIGN(TagSnapshot tags, open_()->ReadTags());
  EXPECT_THAT(tags.tags,
              ::testing::UnorderedElementsAre(::testing::Pair("v0", a), ::testing::Pair("v1", b),
                                              ::testing::Pair("latest", b)));
  ASSERT_THAT(Commit({{"v0", std::nullopt}, {"never", std::nullopt}}), base::IsOk());
  ASSERT_OK_AND_ASSIGN(tags, open_()->ReadTags());
  EXPECT_THAT(tags.tags, ::testing::UnorderedElementsAre(::testing::Pair("v1", b),
                                                         ::testing::Pair("latest", b)));
}

TEST_P(StoreContractTest, RevisionTellsWhetherTagsMoved) {
  const Descriptor a = Put("a");
  const std::string before = Revision();
  EXPECT_EQ(Revision(), before);
  EXPECT_EQ(open_()->ReadTags()->revision, before);
  ASSERT_OK_AND_ASSIGN(const std::string after, store_->CommitTags({{"t", a}}, before));
  EXPECT_NE(after, before);
  EXPECT_EQ(Revision(), after);
  EXPECT_EQ(open_()->ReadTags()->revision, after);
}

TEST_P(StoreContractTest, CommitOnAnOldRevisionChangesNothing) {
  if (!store_->Capabilities().compare_and_swap) GTEST_SKIP() << "not offered";
  const Descriptor a = Put("a");
  const std::string before = Revision();
  ASSERT_THAT(store_->CommitTags({{"t", a}}, before), base::IsOk());
  EXPECT_THAT(store_->CommitTags({{"u", a}}, before), base::StatusIs(base::Code::kAborted));
  EXPECT_THAT(store_->ReadTags()->tags, ::testing::ElementsAre(::testing::Pair("t", a)));
}

TEST_P(StoreContractTest, SecondWriterIsToldWhoHoldsIt) {
  if (!store_->Capabilities().exclusive_hold) GTEST_SKIP() << "not offered";
  const std::unique_ptr<ContentStore> other = open_();
  EXPECT_THAT(other->HoldForWriting("another"),
              base::StatusIs(base::Code::kFailedPrecondition, ::testing::HasSubstr("the test")));
  hold_.reset();
  ASSERT_OK_AND_ASSIGN(const auto hold, other->HoldForWriting("another"));
  EXPECT_THAT(store_->HoldForWriting("the test"),
              base::StatusIs(base::Code::kFailedPrecondition, ::testing::HasSubstr("another")));
}

TEST_P(StoreContractTest, ContentOutlivesTheStore) {
  const Descriptor a = Put("a");
  ASSERT_THAT(Commit({{"t", a}}), base::IsOk());
  hold_.reset();
  store_ = open_();
  ASSERT_OK_AND_ASSIGN(hold_, store_->HoldForWriting("again"));
  EXPECT_THAT(store_->ReadTags()->tags, ::testing::ElementsAre(::testing::Pair("t", a)));
  EXPECT_THAT(store_->ReadBlob(a.digest, 1), base::IsOkAndHolds(std::string("a")));
}

TEST_P(StoreContractTest, BlobsAreListed) {
  if (!store_->Capabilities().list_blobs) {
    EXPECT_THAT(store_->ListBlobs(), base::StatusIs(base::Code::kUnimplemented));
    return;
  }
  ASSERT_OK_AND_ASSIGN(const base::Digest a, store_->PutBlob("a"));
  ASSERT_OK_AND_ASSIGN(const base::Digest bb, store_->PutBlob("bb"));
  ASSERT_OK_AND_ASSIGN(std::vector<StoredBlob> blobs, store_->ListBlobs());
  EXPECT_THAT(blobs, ::testing::UnorderedElementsAre(
                         ::testing::AllOf(::testing::Field(&StoredBlob::digest, a),
                                          ::testing::Field(&StoredBlob::size, 1)),
                         ::testing::AllOf(::testing::Field(&StoredBlob::digest, bb),
                                          ::testing::Field(&StoredBlob::size, 2))));
  ASSERT_THAT(store_->DeleteBlob(a), base::IsOk());
  EXPECT_THAT(store_->ListBlobs()->size(), 1);
}

TEST_P(StoreContractTest, ReadersSeeWholeCommits) {
  if (!store_->Capabilities().atomic_tags) GTEST_SKIP() << "not offered";
  constexpr int kCommits = 200;
  std::vector<Descriptor> targets;
  for (int i = 0; i < kCommits; ++i) targets.push_back(Put(std::to_string(i)));
  ASSERT_THAT(Commit({{"a", targets[0]}, {"b", targets[0]}}), base::IsOk());
  std::jthread writer([&] {
    std::string revision = Revision();
    for (const Descriptor& target : targets) {
      base::Result<std::string> next = store_->CommitTags({{"a", target}, {"b", target}}, revision);
      ASSERT_THAT(next, base::IsOk());
      revision = *next;
    }
  });
  const std::unique_ptr<ContentStore> reader = open_();
  while (true) {
    ASSERT_OK_AND_ASSIGN(const TagSnapshot tags, reader->ReadTags());
    ASSERT_EQ(tags.tags.at("a"), tags.tags.at("b"));
    ASSERT_THAT(reader->ReadBlob(tags.tags.at("a").digest, 100), base::IsOk());
    if (tags.tags.at("a") == targets.back()) break;
  }
}

}  // namespace fl::registry
