#include "trainer/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace fl::trainer {
namespace {

using base::Code;
using Rows = std::vector<int64_t>;

/// 1000 rows of 10 classes, in no order.
std::vector<int32_t> Labels() {
  std::vector<int32_t> labels;
  for (int32_t i = 0; i < 1000; ++i) labels.push_back(i * 7 % 10);
  return labels;
}

std::set<int32_t> ClassesOf(const Rows& rows, const std::vector<int32_t>& labels) {
  std::set<int32_t> classes;
  for (const int64_t row : rows) classes.insert(labels[static_cast<size_t>(row)]);
  return classes;
}

PartitionScheme Scheme(std::string_view text) { return PartitionScheme::Parse(text).value(); }

std::vector<Rows> Split(std::string_view scheme, int64_t parts, uint64_t seed,
                        const std::vector<int32_t>& labels) {
  return SplitRows(Scheme(scheme), parts, seed, labels).value();
}

TEST(PartitionSchemeTest, TextForm) {
  for (const char* text : {"iid", "shards=2", "shards=1", "dirichlet=0.5", "dirichlet=100"}) {
    EXPECT_EQ(Scheme(text).ToString(), text);
  }
  for (const char* text :
       {"", "IID", "shards", "shards=", "shards=0", "shards=-1", "shards=1.5", "dirichlet=0",
        "dirichlet=-1", "dirichlet=nan", "dirichlet=inf", "dirichlet=1x", "dirichlet"}) {
    EXPECT_EQ(PartitionScheme::Parse(text).status().code(), Code::kInvalidArgument) << text;
  }
}

TEST(PartitionTest, EveryRowIsInOnePart) {
  const std::vector<int32_t> labels = Labels();
  for (const char* text :
       {"iid", "shards=2", "shards=3", "dirichlet=0.001", "dirichlet=0.5", "dirichlet=1000"}) {
    for (const int64_t parts : {1, 7, 10}) {
      const auto split = Split(text, parts, 5, labels);
      ASSERT_EQ(split.size(), static_cast<size_t>(parts));
      Rows all;
      for (const Rows& rows : split) {
        EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
        all.insert(all.end(), rows.begin(), rows.end());
      }
      std::sort(all.begin(), all.end());
      ASSERT_EQ(all.size(), labels.size()) << text;
      for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<int64_t>(i)) << text;
    }
  }
}

TEST(PartitionTest, SeedDecides) {
  const std::vector<int32_t> labels = Labels();
  for (const char* text : {"iid", "shards=2", "dirichlet=0.5"}) {
    const auto split = Split(text, 10, 1, labels);
    EXPECT_EQ(Split(text, 10, 1, labels), split);
    EXPECT_NE(Split(text, 10, 2, labels), split);
    EXPECT_EQ(RowsOfPart({Scheme(text), 10, 3, 1}, labels).value(), split[3]);
  }
}

// A split that changed from one release to the next would mix up whose data is whose.
TEST(PartitionTest, IsFixedForAllTime) {
  const std::vector<int32_t> labels = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
  EXPECT_EQ(Split("iid", 3, 1, labels),
            (std::vector<Rows>{{0, 2, 7, 11}, {3, 6, 9, 10}, {1, 4, 5, 8}}));
  EXPECT_EQ(Split("shards=2", 3, 1, labels),
            (std::vector<Rows>{{0, 3, 6, 9}, {1, 4, 7, 10}, {2, 5, 8, 11}}));
  EXPECT_EQ(Split("dirichlet=0.5", 3, 1, labels),
            (std::vector<Rows>{{4, 7, 8, 10}, {0, 1, 3, 6, 11}, {2, 5, 9}}));
}

TEST(PartitionTest, IidIsEven) {
  const auto split = Split("iid", 7, 1, Labels());
  for (const Rows& rows : split) {
    EXPECT_GE(rows.size(), 142U);
    EXPECT_LE(rows.size(), 143U);
    EXPECT_EQ(ClassesOf(rows, Labels()).size(), 10U);
  }
}

TEST(PartitionTest, TwoShardsGiveFewClasses) {
  const std::vector<int32_t> labels = Labels();
  const auto split = Split("shards=2", 50, 1, labels);
  std::set<std::set<int32_t>> mixes;
  for (const Rows& rows : split) {
    EXPECT_EQ(rows.size(), 20U);
    const auto classes = ClassesOf(rows, labels);
    EXPECT_LE(classes.size(), 2U);
    mixes.insert(classes);
  }
  EXPECT_GT(mixes.size(), 10U);
}

TEST(PartitionTest, DirichletIsUnevenForSmallAlphaAndEvenForLarge) {
  const std::vector<int32_t> labels = Labels();
  const auto largest_share = [&labels](const char* scheme) {
    // Of class 0, the part of it that one client has.
    size_t largest = 0;
    for (const Rows& rows : Split(scheme, 10, 3, labels)) {
      const auto zeros = std::count_if(rows.begin(), rows.end(), [&labels](int64_t row) {
        return labels[static_cast<size_t>(row)] == 0;
      });
      largest = std::max(largest, static_cast<size_t>(zeros));
    }
    return largest;  // of 100
  };
  EXPECT_GE(largest_share("dirichlet=0.001"), 99U);
  EXPECT_LE(largest_share("dirichlet=100000"), 11U);
  for (const Rows& rows : Split("dirichlet=0.5", 10, 3, labels)) {
    EXPECT_GE(rows.size(), 10U);
  }
}

TEST(PartitionTest, TooManyPartsAreRefused) {
  const std::vector<int32_t> labels = {0, 1, 0, 1};
  EXPECT_TRUE(SplitRows(Scheme("iid"), 4, 1, labels).ok());
  EXPECT_EQ(SplitRows(Scheme("iid"), 5, 1, labels).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(SplitRows(Scheme("shards=2"), 2, 1, labels).ok());
  EXPECT_EQ(SplitRows(Scheme("shards=2"), 3, 1, labels).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(SplitRows(Scheme("iid"), 0, 1, labels).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(SplitRows(Scheme("dirichlet=1"), 1, 1, {}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(RowsOfPart({Scheme("iid"), 4, 4, 1}, labels).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace fl::trainer
