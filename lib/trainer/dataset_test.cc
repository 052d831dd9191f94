#include "trainer/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "trainer/internal/csv.h"

namespace fl::trainer {
namespace {

using base::Code;
using base::Path;
using base::Status;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DatasetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "dataset.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { EXPECT_TRUE(base::RemoveTree(folder_).ok()); }

  DatasetSpec Write(const std::string& content, const std::string& name = "data.csv") {
    EXPECT_TRUE(base::WriteFileAtomically(folder_ / name, content).ok());
    DatasetSpec spec;
    spec.path = folder_ / name;
    return spec;
  }

  /// IDX files of `rows` images of 2x2 pixels: image i has pixels 4i…4i+3 and label i % 3.
  void WriteIdx(const std::string& prefix, uint8_t rows) {
    std::string images = {0, 0, 8, 3, 0, 0, 0, static_cast<char>(rows), 0, 0, 0, 2, 0, 0, 0, 2};
    std::string labels = {0, 0, 8, 1, 0, 0, 0, static_cast<char>(rows)};
    for (int i = 0; i < rows; ++i) {
      for (int p = 0; p < 4; ++p) images += static_cast<char>(4 * i + p);
      labels += static_cast<char>(i % 3);
    }
    Write(images, prefix + "-images-idx3-ubyte");
    Write(labels, prefix + "-labels-idx1-ubyte");
  }

  Path folder_;
};

TEST(DatasetSpecTest, TextForm) {
  const std::vector<std::string> same = {
      "file:train.csv",
      "file:///data/train.csv",
      "file:a/b.csv?label=digit",
      "file:mnist?split=test",
      "file:train.csv#partition=iid,parts=10,index=9,seed=18446744073709551615",
      "file:train.csv?label=y#partition=shards=2,parts=100,index=3,seed=1",
      "file:/data/x?split=train#partition=dirichlet=0.5,parts=2,index=0,seed=7",
      "file:odd%3fname%23.csv?label=a%26b",
  };
  for (const std::string& uri : same) {
    const auto spec = DatasetSpec::Parse(uri);
    ASSERT_TRUE(spec.ok()) << uri << spec.status().ToString();
    const std::string expected = uri == same[6] ? "file://" + uri.substr(5) : uri;
    EXPECT_EQ(spec->ToString(), expected);
  }
  const auto odd = DatasetSpec::Parse(same[7]).value();
  EXPECT_EQ(odd.path, "odd?name#.csv");
  EXPECT_EQ(odd.label, "a&b");
  EXPECT_EQ(DatasetSpec::Parse("file://localhost/data/x.csv")->path, "/data/x.csv");
}

TEST(DatasetSpecTest, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"train.csv", "not a file: URI"},
      {"s3://bucket/x", "not a file: URI"},
      {"file:", "no path"},
      {"file://host/x.csv", "names a host"},
      {"file:x?color=red", "color=red"},
      {"file:x?split=dev", "split=dev"},
      {"file:x?label", "no '='"},
      {"file:x?label=", "label is empty"},
      {"file:x%2", "hexadecimal"},
      {"file:x%00", "hexadecimal"},
      {"file:x#parts=2", "partition is missing"},
      {"file:x#partition=best,parts=2", "best"},
      {"file:x#partition=iid,parts=0", "no part"},
      {"file:x#partition=iid,parts=2,index=2", "no part 2 of 2"},
      {"file:x#partition=iid,parts=two", "parts is \"two\""},
      {"file:x#partition=iid,seed=-1", "seed is \"-1\""},
      {"file:x#partition=iid,size=3", "\"size\""},
  };
  for (const auto& [uri, message] : cases) {
    const Status status = DatasetSpec::Parse(uri).status();
    EXPECT_FALSE(status.ok()) << uri;
    EXPECT_THAT(status.message(), HasSubstr(message)) << uri;
  }
}

TEST(DatasetSpecTest, RelativePathsAreTakenFromAFolder) {
  EXPECT_EQ(DatasetSpec::Parse("file:../x.csv")->RelativeTo("/a/b").path, "/a/x.csv");
  EXPECT_EQ(DatasetSpec::Parse("file:///x.csv")->RelativeTo("/a/b").path, "/x.csv");
}

TEST_F(DatasetTest, CsvIsReadAsItIsWritten) {
  const std::vector<std::string> same = {
      "a,b,label\n1,2,0\n-3,0.5,2\n",
      "a,b,label\r\n1,2,0\r\n-3,0.5,2\r\n",
      "\xEF\xBB\xBF"
      "a,b,label\n1,2,0\n-3,0.5,2",
      "a,b,label\n\n1,2,0\n\n-3,0.5,2\n\n",
      "\"a\",\"b\",\"label\"\n\"1\",2,\"0\"\n-3,\"0.5\",2\n",
      "a, b ,label\n 1 ,+2.0,0.0\n-3e0,5e-1,2.00\n",
      "a,label,b\n1,0,2\n-3,2,0.5\n",
      "label,\"a \"\"quoted\"\", name\",\"two\nlines\"\n0,1,2\n2,-3,0.5\n",
  };
  for (const std::string& text : same) {
    const auto data = LoadDataset(Write(text));
    ASSERT_TRUE(data.ok()) << text << data.status().ToString();
    EXPECT_EQ(data->features, 2);
    EXPECT_THAT(data->values, ElementsAre(1, 2, -3, 0.5)) << text;
    EXPECT_THAT(data->labels, ElementsAre(0, 2)) << text;
  }
  DatasetSpec named = Write("x,digit\n1,5\n");
  named.label = "digit";
  EXPECT_THAT(LoadDataset(named)->labels, ElementsAre(5));
  EXPECT_EQ(LoadDataset(Write("a,label\n"))->rows(), 0) << "no rows is no error";
}

TEST_F(DatasetTest, CsvErrorsNameLineAndColumn) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "empty"},
      {"a,b\n1,2\n", "line 1: no column is named \"label\""},
      {"label,a,label\n1,2,3\n", "more than one column"},
      {"label\n1\n", "no column besides the label"},
      {"a,label\n1,0\n2\n", "line 3: 1 fields, the header has 2"},
      {"a,label\n1,0\n2,1,9\n", "line 3: 3 fields"},
      {"a,label\n1,0\n\n\nx,1\n", "line 5: column \"a\" is \"x\""},
      {"a,label\n,1\n", "column \"a\" is \"\""},
      {"a,label\nnan,1\n", "column \"a\" is \"nan\""},
      {"a,label\n1e99,1\n", "column \"a\" is \"1e99\""},
      {"a,label\n1,cat\n", "column \"label\" is \"cat\""},
      {"a,label\n1,-1\n", "column \"label\" is \"-1\""},
      {"a,label\n1,1.5\n", "column \"label\" is \"1.5\""},
      {"a,label\n1,\n", "column \"label\" is \"\""},
      {"a,label\n1,99999999999\n", "column \"label\""},
      {"a,label\n\"1,0\n2,1\n", "line 2: a quoted field does not end"},
      {"\"two\nlines\",label\n1,0\nx,0\n", "line 4"},
  };
  for (const auto& [text, message] : cases) {
    const Status status = LoadDataset(Write(text)).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr(message)) << text;
    EXPECT_THAT(status.message(), HasSubstr("data.csv")) << text;
  }
  DatasetSpec missing;
  missing.path = folder_ / "missing.csv";
  EXPECT_EQ(LoadDataset(missing).status().code(), Code::kNotFound);
}

// Records longer than the reader's buffer, and every way a record can lie across its end.
TEST_F(DatasetTest, CsvAcrossBufferEnds) {
  std::string text = "label";
  constexpr int kColumns = 50'000;
  for (int i = 0; i < kColumns; ++i) text += ",feature" + std::to_string(i);
  text += "\n";
  for (int row = 0; row < 3; ++row) {
    text += std::to_string(row);
    for (int i = 0; i < kColumns; ++i) {
      text += i % 3 == 0 ? ",\"" + std::to_string(row + i) + "\"" : "," + std::to_string(row + i);
    }
    text += "\r\n";
  }
  const auto data = LoadDataset(Write(text));
  ASSERT_TRUE(data.ok()) << data.status().ToString();
  EXPECT_EQ(data->features, kColumns);
  EXPECT_THAT(data->labels, ElementsAre(0, 1, 2));
  for (int i = 0; i < kColumns; ++i) {
    ASSERT_EQ(data->values[static_cast<size_t>(2 * kColumns + i)], static_cast<float>(2 + i));
  }
}

TEST_F(DatasetTest, PartsOfACsvMakeTheWhole) {
  std::string text = "x,label\n";
  for (int i = 0; i < 100; ++i) text += std::to_string(i) + "," + std::to_string(i % 4) + "\n";
  DatasetSpec spec = Write(text);
  for (const char* scheme : {"iid", "shards=2", "dirichlet=0.5"}) {
    std::vector<float> seen;
    for (int64_t index = 0; index < 5; ++index) {
      spec.part = Partition{PartitionScheme::Parse(scheme).value(), 5, index, 9};
      const Dataset data = LoadDataset(spec).value();
      for (size_t i = 0; i < data.labels.size(); ++i) {
        EXPECT_EQ(data.labels[i], static_cast<int32_t>(data.values[i]) % 4);
      }
      EXPECT_EQ(SummarizeLabels(spec)->rows, data.rows());
      seen.insert(seen.end(), data.values.begin(), data.values.end());
    }
    std::sort(seen.begin(), seen.end());
    ASSERT_EQ(seen.size(), 100U) << scheme;
    for (size_t i = 0; i < 100; ++i) EXPECT_EQ(seen[i], static_cast<float>(i));
  }
  spec.part = Partition{PartitionScheme(), 101, 0, 9};
  EXPECT_THAT(LoadDataset(spec).status().message(), HasSubstr("data.csv: a dataset of 100 rows"));
}

TEST_F(DatasetTest, IdxFolders) {
  WriteIdx("train", 6);
  WriteIdx("t10k", 2);
  DatasetSpec spec;
  spec.path = folder_;
  const Dataset train = LoadDataset(spec).value();
  EXPECT_EQ(train.features, 4);
  EXPECT_THAT(train.labels, ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_EQ(train.values[23], 23.0F / 255.0F);
  EXPECT_EQ(LoadDataset(spec, Split::kTest)->rows(), 2);
  spec.split = Split::kTest;
  EXPECT_EQ(LoadDataset(spec)->rows(), 2);
  spec.split.reset();
  spec.part = Partition{PartitionScheme::Parse("shards=1").value(), 3, 0, 1};
  const Dataset part = LoadDataset(spec).value();
  EXPECT_EQ(part.rows(), 2);
  EXPECT_EQ(part.labels[0], part.labels[1]);
  EXPECT_EQ(part.values[0], static_cast<float>(4 * part.labels[0]) / 255.0F);
}

TEST_F(DatasetTest, IdxFolderWithOnePairIsThatPair) {
  WriteIdx("t10k", 2);
  DatasetSpec spec;
  spec.path = folder_;
  EXPECT_EQ(LoadDataset(spec)->rows(), 2);
  spec.split = Split::kTrain;
  EXPECT_EQ(LoadDataset(spec).status().code(), Code::kNotFound);
}

TEST_F(DatasetTest, IdxThatIsWrong) {
  DatasetSpec spec;
  spec.path = folder_;
  EXPECT_EQ(LoadDataset(spec).status().code(), Code::kNotFound);
  Write("x", "train-images-idx3-ubyte.gz");
  EXPECT_THAT(LoadDataset(spec).status().hint(), HasSubstr("gunzip"));
  WriteIdx("train", 6);
  const std::string images = base::ReadFile(folder_ / "train-images-idx3-ubyte").value();
  const auto with = [&](size_t at, char byte) {
    std::string changed = images;
    changed[at] = byte;
    Write(changed, "train-images-idx3-ubyte");
    return LoadDataset(spec).status();
  };
  EXPECT_THAT(with(2, 13).message(), HasSubstr("not an IDX file"));
  EXPECT_THAT(with(3, 1).message(), HasSubstr("not an IDX file"));
  EXPECT_THAT(with(7, 7).message(), HasSubstr("do not match"));
  EXPECT_THAT(with(8, 127).message(), HasSubstr("do not match"));
  EXPECT_THAT(with(11, 0).message(), HasSubstr("do not match"));
  Write(images.substr(0, 10), "train-images-idx3-ubyte");
  EXPECT_THAT(LoadDataset(spec).status().message(), HasSubstr("ends too early"));
  Write(images, "train-images-idx3-ubyte");
  Write(std::string({0, 0, 8, 1, 0, 0, 0, 1, 0}), "train-labels-idx1-ubyte");
  EXPECT_THAT(LoadDataset(spec).status().message(), HasSubstr("6 images and 1 labels"));
}

TEST_F(DatasetTest, BatchesComeInOrder) {
  const DatasetSpec spec = Write("x,label\n0,0\n1,1\n2,0\n3,1\n4,0\n");
  std::vector<size_t> sizes;
  std::vector<float> values;
  ASSERT_TRUE(ForEachBatch(spec, 2, Split::kTrain, [&](const Batch& batch) {
                sizes.push_back(batch.labels.size());
                values.insert(values.end(), batch.values.begin(), batch.values.end());
                return base::OkStatus();
              }).ok());
  EXPECT_THAT(sizes, ElementsAre(2, 2, 1));
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 3, 4));
  int calls = 0;
  const Status stopped = ForEachBatch(spec, 2, Split::kTrain, [&](const Batch&) {
    ++calls;
    return base::Cancelled("enough");
  });
  EXPECT_EQ(stopped.code(), Code::kCancelled);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(SummarizeLabels(spec)->classes, 2);
}

}  // namespace
}  // namespace fl::trainer
