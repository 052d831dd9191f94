#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/testing/status_matchers.h"
#include "registry/internal/artifact.h"
#include "registry/internal/history.h"
#include "registry/memory_store.h"
#include "registry/repository.h"
#include "registry/testing/sample.h"

namespace fl::registry {
namespace {

using base::IsOk;
using base::VersionNumber;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Kind = Problem::Kind;

/// A repository in memory with ten versions and more, whose content the test damages.
class VerifyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base::Result<std::unique_ptr<ModelRepository>> opened =
        ModelRepository::OpenWriter(std::make_unique<MemoryStore>(content_), {});
    ASSERT_THAT(opened, IsOk());
    writer_ = *std::move(opened);
    ASSERT_THAT(PublishSamples(*writer_, 10), IsOk());
    ASSERT_THAT(writer_->Promote(VersionNumber(3)), IsOk());
    ASSERT_THAT(writer_->Pin(VersionNumber(3)), IsOk());
    ASSERT_THAT(Problems(), SizeIs(0));
  }
  std::vector<Problem> Problems() {
    const auto reader = ModelRepository::OpenReader(std::make_unique<MemoryStore>(content_));
    EXPECT_THAT(reader, IsOk());
    const base::Result<VerifyReport> report = (*reader)->Verify();
    EXPECT_THAT(report, IsOk());
    return report.ok() ? report->problems : std::vector<Problem>();
  }
  static auto Is(Kind kind, const std::string& subject) {
    return AllOf(Field("kind", &Problem::kind, kind),
                 Field("subject", &Problem::subject, HasSubstr(subject)));
  }
  std::string& Bytes(const base::Digest& digest) { return content_->blobs.at(digest).bytes; }
  internal::Artifact Manifest(const std::string& tag) {
    return *internal::ParseArtifact(Bytes(content_->tags.at(tag).digest), tag);
  }

  /// Replaces the records by `lines`, with digests that are right: what a forger would do who knows
  /// the format but not the chain.
  void ForgeRecords(const std::vector<std::string>& lines) {
    MemoryStore store(content_);
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    internal::Artifact artifact = Manifest("records");
    artifact.layers = {
        {std::string(internal::kRecordsLayerType), *store.PutBlob(text), text.size()}};
    artifact.annotations["dev.kubefl.records.head"] = base::Digest::Of(lines.back()).ToString();
    content_->tags["records"] =
        *store.PutManifest(internal::FormatArtifact(artifact), internal::kManifestType);
    ++content_->revision;
  }
  std::vector<std::string> Lines() {
    std::istringstream text(Bytes(Manifest("records").layers.back().digest));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  const std::shared_ptr<MemoryRepository> content_ = std::make_shared<MemoryRepository>();
  std::unique_ptr<ModelRepository> writer_;
};

TEST_F(VerifyTest, CountsWhatItChecked) {
  ASSERT_OK_AND_ASSIGN(const VerifyReport report, writer_->Verify());
  EXPECT_EQ(report.versions, 10);
  EXPECT_EQ(report.pruned, 0);
  EXPECT_EQ(report.records, 12);
  EXPECT_FALSE(report.history_absent);
  EXPECT_GT(report.bytes, 10 * (9 + 7));
}

TEST_F(VerifyTest, AnyChangedByteOfAnyBlobIsFoundAndNamed) {
  for (const auto& [tag, target] : std::map(content_->tags.begin(), content_->tags.end())) {
    const internal::Artifact artifact = Manifest(tag);
    std::vector<std::pair<std::string, base::Digest>> parts = {{"manifest", target.digest}};
    if (tag != "records") parts.emplace_back("config", artifact.config.digest);
    if (tag == "records") parts.emplace_back("records layer 0", artifact.layers.at(0).digest);
    if (const Descriptor* weights = artifact.FindLayer(internal::kWeightsLayerType)) {
      parts.emplace_back("weights", weights->digest);
    }
    if (const Descriptor* state = artifact.FindLayer(internal::kStateLayerType)) {
      parts.emplace_back("optimiser state", state->digest);
    }
    for (const auto& [part, digest] : parts) {
      SCOPED_TRACE(tag + " " + part);
      std::string& bytes = Bytes(digest);
      const std::string whole = bytes;
      const std::string subject = tag.starts_with('v') ? tag + " " + part : part;
      for (const size_t at : {size_t{0}, whole.size() / 2, whole.size() - 1}) {
        bytes[at] = static_cast<char>(bytes[at] ^ 1);
        EXPECT_THAT(Problems(), Contains(Is(Kind::kChanged, subject)));
        bytes = whole;
      }
      bytes.pop_back();
      EXPECT_THAT(Problems(), Contains(Is(Kind::kChanged, subject)));
      bytes = whole + "x";
      EXPECT_THAT(Problems(), Contains(Is(Kind::kChanged, subject)));
      bytes = whole;
      auto blob = content_->blobs.extract(digest);
      EXPECT_THAT(Problems(), Contains(Is(Kind::kMissing, subject)));
      content_->blobs.insert(std::move(blob));
    }
  }
  EXPECT_THAT(Problems(), SizeIs(0));
}

TEST_F(VerifyTest, RecordLeftOutIsNamed) {
  std::vector<std::string> lines = Lines();
  lines.erase(lines.begin() + 4, lines.begin() + 6);
  ForgeRecords(lines);
  EXPECT_THAT(Problems(), ElementsAre(Is(Kind::kMissing, "record 4")));
  EXPECT_THAT(ModelRepository::OpenReader(std::make_unique<MemoryStore>(content_)).value()->List(),
              base::StatusIs(base::Code::kDataLoss, HasSubstr("record 4")));
}

TEST_F(VerifyTest, RecordsThatChangedPlacesAreNamed) {
  std::vector<std::string> lines = Lines();
  std::swap(lines[4], lines[5]);
  ForgeRecords(lines);
  EXPECT_THAT(Problems(), Contains(Is(Kind::kReordered, "record 4")));
}

TEST_F(VerifyTest, ChangedRecordIsNamed) {
  std::vector<std::string> lines = Lines();
  const size_t at = lines[5].find("\"accuracy\":0.5");
  ASSERT_NE(at, std::string::npos);
  lines[5].replace(at, 14, "\"accuracy\":0.9");
  ForgeRecords(lines);
  EXPECT_THAT(Problems(), ElementsAre(Is(Kind::kChanged, "record 5")));
}

TEST_F(VerifyTest, LastRecordLeftOutIsFoundByTheTags) {
  std::vector<std::string> lines = Lines();
  lines.pop_back();  // the pin
  ForgeRecords(lines);
  EXPECT_THAT(Problems(), ElementsAre(Is(Kind::kInconsistent, "tag pinned")));
}

TEST_F(VerifyTest, TagsThatMovedWithoutARecordAreNamed) {
  content_->tags["latest"] = content_->tags["v2"];
  content_->tags["v12"] = content_->tags["v2"];
  content_->tags.erase("v4");
  ++content_->revision;
  EXPECT_THAT(Problems(), ::testing::UnorderedElementsAre(Is(Kind::kChanged, "tag latest"),
                                                          Is(Kind::kInconsistent, "tag v12"),
                                                          Is(Kind::kMissing, "tag v4")));
}

TEST_F(VerifyTest, RecordThatContradictsItsVersionIsNamed) {
  // A chain that is right in itself, told anew with a better accuracy.
  std::vector<std::string> lines = Lines();
  const size_t at = lines[9].find("\"accuracy\":0.5");
  ASSERT_NE(at, std::string::npos);
  lines[9].replace(at, 14, "\"accuracy\":0.9");
  for (size_t i = 10; i < lines.size(); ++i) {
    Record record = *ParseRecord(lines[i]);
    record.previous = base::Digest::Of(lines[i - 1]);
    lines[i] = FormatRecord(record);
  }
  ForgeRecords(lines);
  EXPECT_THAT(Problems(), ElementsAre(Is(Kind::kInconsistent, "v9 config")));
}

TEST_F(VerifyTest, RecordsThatAreNotRecordsAreNamed) {
  for (const std::string& bad :
       {std::string("{"), std::string("[]"), std::string("{\"seq\":12}"), std::string(1000, '[')}) {
    std::vector<std::string> lines = Lines();
    lines.push_back(bad);
    ForgeRecords(lines);
    EXPECT_THAT(Problems(), Contains(Is(Kind::kChanged, "record 12"))) << bad;
    lines.pop_back();
    ForgeRecords(lines);
  }
}

TEST_F(VerifyTest, UnknownRecordsAreSkipped) {
  std::vector<std::string> lines = Lines();
  Record record = *ParseRecord(lines.back());
  record.sequence += 1;
  record.previous = base::Digest::Of(lines.back());
  record.type = "something-new";
  record.data = "{\"a\":[1,2]}";
  lines.push_back(FormatRecord(record));
  ForgeRecords(lines);
  EXPECT_THAT(Problems(), SizeIs(0));
}

TEST_F(VerifyTest, VersionCopiedAloneSaysThatItsHistoryIsAbsent) {
  const auto elsewhere = std::make_shared<MemoryRepository>();
  elsewhere->made = true;
  elsewhere->blobs = content_->blobs;
  elsewhere->tags["v7"] = content_->tags["v7"];
  const auto open = [&] { return std::make_unique<MemoryStore>(elsewhere); };
  ASSERT_OK_AND_ASSIGN(const auto reader, ModelRepository::OpenReader(open()));
  ASSERT_OK_AND_ASSIGN(VerifyReport report, reader->Verify());
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report.history_absent);
  EXPECT_EQ(report.versions, 1);
  ASSERT_OK_AND_ASSIGN(const VersionInfo info, reader->Latest());
  EXPECT_EQ(info.version, VersionNumber(7));
  EXPECT_EQ(info.round, base::RoundNumber(7));
  EXPECT_EQ(info.manifest, writer_->Get(VersionNumber(7))->manifest);
  EXPECT_EQ(Text(*reader->OpenWeights(VersionNumber(7))), "weights 7");
  EXPECT_THAT(ModelRepository::OpenWriter(open(), {}),
              base::StatusIs(base::Code::kFailedPrecondition, HasSubstr("without their records")));

  elsewhere->blobs.at(info.weights).bytes += "x";
  ASSERT_OK_AND_ASSIGN(report, reader->Verify());
  EXPECT_THAT(report.problems, ElementsAre(Is(Kind::kChanged, "v7 weights")));
}

}  // namespace
}  // namespace fl::registry
