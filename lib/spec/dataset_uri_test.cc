#include "spec/dataset_uri.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace fl::spec {
namespace {

using Kind = DatasetUri::Kind;
using ::testing::HasSubstr;

TEST(DatasetUri, Forms) {
  struct Row {
    std::string uri;
    DatasetUri expected;
  };
  const std::vector<Row> rows{
      {"file:train.csv", {"train.csv", "label", Kind::kCsv}},
      {"file:./a/train.csv", {"./a/train.csv", "label", Kind::kCsv}},
      {"file:/data/train.csv", {"/data/train.csv", "label", Kind::kCsv}},
      {"file:///data/train.csv", {"/data/train.csv", "label", Kind::kCsv}},
      {"file://localhost/data/train.csv", {"/data/train.csv", "label", Kind::kCsv}},
      {"file:train.CSV?label=digit", {"train.CSV", "digit", Kind::kCsv}},
      {"file:a%20b.csv?label=the%20class", {"a b.csv", "the class", Kind::kCsv}},
      {"file:50%25.csv", {"50%.csv", "label", Kind::kCsv}},
      {"file:what%3F.csv", {"what?.csv", "label", Kind::kCsv}},
      {"file:///data/mnist", {"/data/mnist", "label", Kind::kFolder}},
      {"file:mnist/", {"mnist/", "label", Kind::kFolder}},
      {"file:////x.csv", {"//x.csv", "label", Kind::kCsv}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.uri);
    const base::Result<DatasetUri> uri = DatasetUri::Parse(row.uri);
    ASSERT_THAT(uri, base::IsOk());
    EXPECT_EQ(*uri, row.expected) << uri->path << " " << uri->label;
    const base::Result<DatasetUri> again = DatasetUri::Parse(uri->ToString());
    ASSERT_THAT(again, base::IsOk()) << uri->ToString();
    EXPECT_EQ(*again, row.expected) << uri->ToString();
  }
}

TEST(DatasetUri, Refused) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"", "must be a file: URI"},
      {"train.csv", "must be a file: URI"},
      {"http://host/train.csv", "must be a file: URI"},
      {"s3://bucket/train.csv", "must be a file: URI"},
      {"file:", "has no path"},
      {"file:?label=x", "has no path"},
      {"file://host/train.csv", "names a host"},
      {"file://train.csv", "names a host"},
      {"file:a.csv?sep=x", "has a query other than label=NAME"},
      {"file:a.csv?", "has a query other than label=NAME"},
      {"file:a.csv?label=a&label=b", "has a query other than label=NAME"},
      {"file:a.csv?label=", "has an empty label"},
      {"file:a%2", "has a % without two hex digits"},
      {"file:a%zz", "has a % without two hex digits"},
      {"file:a%00b", "has a NUL character"},
      {"file:mnist?label=x", "is no .csv file"},
  };
  for (const auto& [uri, message] : rows) {
    EXPECT_THAT(DatasetUri::Parse(uri),
                base::StatusIs(base::Code::kInvalidArgument, HasSubstr(message)))
        << uri;
  }
}

}  // namespace
}  // namespace fl::spec
