#include "registry/open.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"
#include "registry/testing/sample.h"

namespace fl::registry {
namespace {

using base::Code;
using base::IsOk;
using base::IsOkAndHolds;
using base::ModelName;
using base::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(OpenTest, PathsAndFileUrisNameTheSameFolder) {
  const base::TemporaryDirectory folder;
  const std::string path = (folder / "registry").string();
  {
    ASSERT_OK_AND_ASSIGN(const auto writer, OpenWriter("file://" + path, ModelName("digits"), {}));
    ASSERT_THAT(PublishSamples(*writer, 2), IsOk());
  }
  const std::string relative =
      std::filesystem::relative(path, std::filesystem::current_path()).string();
  for (const std::string& uri :
       {path, path + "/", "file:" + path, "file://" + path, relative, "file:" + relative}) {
    ASSERT_OK_AND_ASSIGN(const auto reader, OpenReader(uri, ModelName("digits")));
    EXPECT_EQ(reader->List()->size(), 2) << uri;
    EXPECT_THAT(ListModels(uri), IsOkAndHolds(ElementsAre(ModelName("digits")))) << uri;
  }
}

TEST(OpenTest, OtherUrisAreRefused) {
  const ModelName model("digits");
  for (const std::string_view uri : {"s3://bucket/prefix", "oci://registry.example/models"}) {
    EXPECT_THAT(OpenStore(uri, model), StatusIs(Code::kUnimplemented, HasSubstr(std::string(uri))));
    EXPECT_THAT(ListModels(uri), StatusIs(Code::kUnimplemented));
  }
  for (const std::string_view uri : {"", "file:", "file://", "file://host/path", "http://x/y"}) {
    EXPECT_THAT(OpenStore(uri, model), StatusIs(Code::kInvalidArgument)) << uri;
    EXPECT_THAT(ListModels(uri), StatusIs(Code::kInvalidArgument)) << uri;
  }
}

TEST(OpenTest, NamesOfModelsStayWithinTheRegistry) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../x"), std::string("a/b"),
        std::string("/etc"), std::string("Digits"), std::string("-a"), std::string("a-"),
        std::string(".a"), std::string("a."), std::string("a..b"), std::string("a.-b"),
        std::string("a-.b"), std::string("a\0b", 3), std::string("ä"), std::string(254, 'a')}) {
    EXPECT_THAT(OpenStore("/tmp", ModelName(name)), StatusIs(Code::kInvalidArgument)) << name;
  }
  for (const std::string& name : {std::string("a"), std::string("digits-2"), std::string("a.b-c.0"),
                                  std::string("a--b"), std::string(253, 'a')}) {
    EXPECT_THAT(OpenStore("/tmp", ModelName(name)), IsOk()) << name;
  }
}

TEST(OpenTest, MissingModelIsToldWithThoseThatThereAre) {
  const base::TemporaryDirectory folder;
  const std::string uri = folder.path().string();
  EXPECT_THAT(ListModels(uri), IsOkAndHolds(IsEmpty()));
  for (const std::string name : {"iris", "digits"}) {
    ASSERT_THAT(OpenWriter(uri, ModelName(name), {}), IsOk());
  }
  // Neither other folders nor files are models.
  ASSERT_THAT(base::MakeDirectories(folder / "notes"), IsOk());
  ASSERT_THAT(base::WriteFileAtomically(folder / "file", ""), IsOk());
  EXPECT_THAT(ListModels(uri), IsOkAndHolds(ElementsAre(ModelName("digits"), ModelName("iris"))));
  const auto missing = OpenReader(uri, ModelName("none"));
  EXPECT_THAT(missing, StatusIs(Code::kNotFound, HasSubstr("\"none\"")));
  EXPECT_THAT(missing.status().hint(), HasSubstr("digits, iris"));
  EXPECT_THAT(OpenReader(uri + "/nowhere", ModelName("none")), StatusIs(Code::kNotFound));
  EXPECT_THAT(ListModels(uri + "/nowhere"), StatusIs(Code::kNotFound, HasSubstr("nowhere")));
}

TEST(OpenTest, HolderIsNamed) {
  const base::TemporaryDirectory folder;
  const std::string uri = folder.path().string();
  ASSERT_OK_AND_ASSIGN(auto writer, OpenWriter(uri, ModelName("digits"), {"aggregator, pid 7"}));
  EXPECT_THAT(OpenWriter(uri, ModelName("digits"), {"another"}),
              StatusIs(Code::kFailedPrecondition, HasSubstr("aggregator, pid 7")));
  writer.reset();
  EXPECT_THAT(OpenWriter(uri, ModelName("digits"), {"another"}), IsOk());
}

}  // namespace
}  // namespace fl::registry
