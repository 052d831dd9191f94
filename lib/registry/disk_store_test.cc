#include "registry/disk_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"
#include "registry/repository.h"
#include "registry/testing/sample.h"

namespace fl::registry {
namespace {

using base::Code;
using base::IsOk;
using base::IsOkAndHolds;
using base::Path;
using base::StatusIs;
using base::VersionNumber;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DiskStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { OpenWriter(); }
  void OpenWriter() {
    writer_.reset();
    base::Result<std::unique_ptr<ModelRepository>> opened =
        ModelRepository::OpenWriter(std::make_unique<DiskStore>(place_), {"the test", "fl 0.1.0"});
    ASSERT_THAT(opened, IsOk());
    writer_ = *std::move(opened);
  }
  std::unique_ptr<ModelRepository> Reader() {
    return *ModelRepository::OpenReader(std::make_unique<DiskStore>(place_));
  }
  json ReadJson(const Path& path) { return *base::ParseJson(*base::ReadFile(path), path.string()); }
  json Index() { return ReadJson(place_ / "index.json"); }
  Path Blob(const base::Digest& digest) { return place_ / "blobs/sha256" / digest.Hex(); }

  base::TemporaryDirectory folder_;
  const Path place_ = folder_ / "digits";
  std::unique_ptr<ModelRepository> writer_;
};

TEST_F(DiskStoreTest, IsAnOciImageLayout) {
  ASSERT_THAT(PublishSamples(*writer_, 2), IsOk());
  EXPECT_EQ(ReadJson(place_ / "oci-layout"), json({{"imageLayoutVersion", "1.0.0"}}));
  const json index = Index();
  EXPECT_EQ(index["schemaVersion"], 2);
  EXPECT_EQ(index["mediaType"], "application/vnd.oci.image.index.v1+json");
  std::map<std::string, json> tags;
  for (const json& entry : index["manifests"]) {
    tags[entry["annotations"]["org.opencontainers.image.ref.name"]] = entry;
  }
  ASSERT_EQ(tags.size(), 4);
  EXPECT_EQ(tags["latest"]["digest"], tags["v1"]["digest"]);
  EXPECT_TRUE(tags.contains("v0") && tags.contains("records"));

  const base::Digest digest = *base::Digest::Parse(tags["v1"]["digest"].get<std::string>());
  EXPECT_EQ(tags["v1"]["size"], std::filesystem::file_size(Blob(digest)));
  const json manifest = ReadJson(Blob(digest));
  EXPECT_EQ(manifest["schemaVersion"], 2);
  EXPECT_EQ(manifest["mediaType"], "application/vnd.oci.image.manifest.v1+json");
  EXPECT_EQ(manifest["artifactType"], "application/vnd.kubefl.model.v1");
  ASSERT_EQ(manifest["layers"].size(), 2);
  EXPECT_EQ(manifest["layers"][0]["mediaType"],
            "application/vnd.kubefl.model.layer.v1.safetensors");
  EXPECT_EQ(manifest["layers"][0]["digest"], base::Digest::Of("weights 1").ToString());
  EXPECT_EQ(manifest["layers"][0]["size"], 9);
  EXPECT_EQ(manifest["layers"][1]["digest"], base::Digest::Of("state 1").ToString());
  EXPECT_TRUE(manifest["annotations"].contains("org.opencontainers.image.created"));

  const json config =
      ReadJson(Blob(*base::Digest::Parse(manifest["config"]["digest"].get<std::string>())));
  EXPECT_EQ(config["model"]["job"], "digits");
  EXPECT_EQ(config["model"]["round"], 1);
  EXPECT_EQ(config["model"]["contributors"], 10);
  EXPECT_EQ(config["model"]["parent"]["version"], 0);
  EXPECT_EQ(config["model"]["software"], "fl 0.1.0");
  EXPECT_EQ(config["rootfs"]["diff_ids"][0], base::Digest::Of("weights 1").ToString());
}

TEST_F(DiskStoreTest, WhatOthersWroteInTheIndexIsKept) {
  ASSERT_THAT(PublishSamples(*writer_, 1), IsOk());
  json index = Index();
  json theirs = index["manifests"][0];
  theirs["annotations"] = {{"org.opencontainers.image.ref.name", "production"}, {"who", "ops"}};
  theirs["platform"] = {{"os", "any"}};
  index["manifests"].push_back(theirs);
  json nameless = theirs;
  nameless.erase("annotations");
  index["manifests"].push_back(nameless);
  index["annotations"] = {{"note", "of the whole"}};
  ASSERT_THAT(base::WriteFileAtomically(place_ / "index.json", base::DumpJson(index)), IsOk());
  ASSERT_THAT(PublishSamples(*writer_, 2), IsOk());
  const json after = Index();
  EXPECT_EQ(after["annotations"], index["annotations"]);
  EXPECT_THAT(after["manifests"],
              AllOf(::testing::Contains(theirs), ::testing::Contains(nameless)));
  EXPECT_TRUE(writer_->Verify()->ok());
}

TEST_F(DiskStoreTest, B16_TruncatedVersionIsRefusedByNameAndOthersLoad) {
  ASSERT_THAT(PublishSamples(*writer_, 5), IsOk());
  const base::Digest weights = writer_->Get(VersionNumber(4))->weights;
  writer_.reset();
  std::filesystem::resize_file(Blob(weights), 3);
  const auto reader = Reader();
  EXPECT_THAT(reader->OpenWeights(VersionNumber(4)),
              StatusIs(Code::kDataLoss, AllOf(HasSubstr("version 4: weights"), HasSubstr("3 bytes"),
                                              HasSubstr(weights.ToString()))));
  EXPECT_EQ(Text(*reader->OpenWeights(VersionNumber(3))), "weights 3");
  ASSERT_OK_AND_ASSIGN(const VerifyReport report, reader->Verify());
  ASSERT_EQ(report.problems.size(), 1);
  EXPECT_EQ(report.problems[0].subject, "v4 weights");
  EXPECT_THAT(report.problems[0].message, HasSubstr("3 bytes, its manifest says 9"));
}

TEST_F(DiskStoreTest, DamageAfterAFirstReadIsNoticed) {
  ASSERT_THAT(PublishSamples(*writer_, 1), IsOk());
  const auto reader = Reader();
  ASSERT_THAT(reader->OpenWeights(VersionNumber(0)), IsOk());
  const Path blob = Blob(base::Digest::Of("weights 0"));
  ASSERT_THAT(base::WriteFileAtomically(blob, "weights X"), IsOk());
  EXPECT_THAT(reader->OpenWeights(VersionNumber(0)), StatusIs(Code::kDataLoss));
  EXPECT_THAT(writer_->OpenWeights(VersionNumber(0)), StatusIs(Code::kDataLoss));
}

TEST_F(DiskStoreTest, B16_LeftoversAreIgnoredAndCleanedByTheWriter) {
  ASSERT_THAT(PublishSamples(*writer_, 4), IsOk());
  ASSERT_OK_AND_ASSIGN(const Path staged, writer_->StagingPath("half"));
  const std::vector<Path> leftovers = {place_ / "index.json.123-0.tmp",
                                       Blob(base::Digest::Of("weights 4")).string() + ".123-7.tmp",
                                       staged};
  for (const Path& path : leftovers) ASSERT_THAT(base::WriteFileAtomically(path, "wei"), IsOk());
  EXPECT_EQ(Reader()->Latest()->version, VersionNumber(3));
  EXPECT_TRUE(Reader()->Verify()->ok());
  OpenWriter();
  for (const Path& path : leftovers) EXPECT_FALSE(std::filesystem::exists(path)) << path;
  EXPECT_EQ(writer_->Latest()->version, VersionNumber(3));
}

TEST_F(DiskStoreTest, TruncatedIndexIsAnErrorThatNamesIt) {
  ASSERT_THAT(PublishSamples(*writer_, 1), IsOk());
  writer_.reset();
  std::filesystem::resize_file(place_ / "index.json", 40);
  const auto reader = ModelRepository::OpenReader(std::make_unique<DiskStore>(place_));
  EXPECT_THAT(reader, StatusIs(Code::kDataLoss, HasSubstr("index.json")));
  EXPECT_THAT(ModelRepository::OpenWriter(std::make_unique<DiskStore>(place_), {}),
              StatusIs(Code::kDataLoss, HasSubstr("index.json")));
}

TEST_F(DiskStoreTest, DamagedBlobIsReplacedWhenItIsPutAgain) {
  DiskStore store(place_);
  ASSERT_OK_AND_ASSIGN(const base::Digest digest, store.PutBlob("content"));
  std::filesystem::resize_file(Blob(digest), 2);
  EXPECT_THAT(store.ReadBlob(digest, 100), StatusIs(Code::kDataLoss));
  ASSERT_THAT(store.PutBlob("content"), IsOkAndHolds(digest));
  EXPECT_THAT(store.ReadBlob(digest, 100), IsOkAndHolds(std::string("content")));
}

TEST_F(DiskStoreTest, NoGarbageIsLeftByOrdinaryWork) {
  ASSERT_THAT(PublishSamples(*writer_, 70), IsOk());
  ASSERT_THAT(writer_->Pin(VersionNumber(3)), IsOk());
  ASSERT_THAT(writer_->Unpin(), IsOk());
  // Only what the last commit replaced: a manifest of records and one layer.
  EXPECT_LE(writer_->Verify()->unreferenced_blobs, 2);
}

/// What a command prints, or nothing where it fails.
std::optional<std::string> OutputOf(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string output;
  for (int c = ::fgetc(pipe); c != EOF; c = ::fgetc(pipe)) output.push_back(static_cast<char>(c));
  const int status = ::pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  ADD_FAILURE() << command << ": " << output;
  return std::nullopt;
}

class SkopeoTest : public DiskStoreTest {
 protected:
  void SetUp() override {
    if (::system("command -v skopeo >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "skopeo is not installed (Debian package skopeo)";
    }
    DiskStoreTest::SetUp();
    ASSERT_THAT(PublishSamples(*writer_, 4), IsOk());
  }
};

TEST_F(SkopeoTest, InspectsAVersion) {
  const std::optional<std::string> output =
      OutputOf("skopeo inspect oci:" + place_.string() + ":v3");
  ASSERT_TRUE(output);
  const json seen = *base::ParseJson(*output, "skopeo");
  EXPECT_EQ(seen["Digest"], writer_->Get(VersionNumber(3))->manifest.ToString());
  EXPECT_EQ(seen["Layers"][0], base::Digest::Of("weights 3").ToString());
  EXPECT_EQ(seen["Labels"]["dev.kubefl.job"], "digits");
  EXPECT_EQ(seen["Labels"]["dev.kubefl.round"], "3");
  EXPECT_TRUE(OutputOf("skopeo inspect --raw oci:" + place_.string() + ":records"));
}

TEST_F(SkopeoTest, CopiesAVersionThatSaysItsHistoryIsAbsent) {
  const std::string copy = (folder_ / "copy").string();
  ASSERT_TRUE(OutputOf("skopeo copy --insecure-policy oci:" + place_.string() +
                       ":latest oci:" + copy + ":v3"));
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       ModelRepository::OpenReader(std::make_unique<DiskStore>(copy)));
  ASSERT_OK_AND_ASSIGN(const VerifyReport report, reader->Verify());
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report.history_absent);
  EXPECT_EQ(reader->Latest()->manifest, writer_->Latest()->manifest);
  EXPECT_EQ(Text(*reader->OpenWeights(VersionNumber(3))), "weights 3");
}

TEST_F(SkopeoTest, CopyOfAllTagsIsTheWholeRegistry) {
  const Path copy = folder_ / "copy";
  for (const std::string tag : {"v0", "v1", "v2", "v3", "latest", "records"}) {
    ASSERT_TRUE(OutputOf("skopeo copy --insecure-policy oci:" + place_.string() + ":" + tag +
                         " oci:" + copy.string() + ":" + tag));
  }
  ASSERT_OK_AND_ASSIGN(const auto writer,
                       ModelRepository::OpenWriter(std::make_unique<DiskStore>(copy), {}));
  ASSERT_OK_AND_ASSIGN(const VerifyReport report, writer->Verify());
  EXPECT_TRUE(report.ok());
  EXPECT_FALSE(report.history_absent);
  ASSERT_THAT(PublishSamples(*writer, 5), IsOk());
  EXPECT_TRUE(writer->Verify()->ok());
}

}  // namespace
}  // namespace fl::registry
