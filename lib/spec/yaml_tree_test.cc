#include "spec/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/testing/status_matchers.h"

namespace fl::spec {
namespace {

using base::Code;
using base::StatusIs;
using testing::HasSubstr;

TEST(YamlTree, KeepsTypesAndLines) {
  ASSERT_OK_AND_ASSIGN(const Value tree, ParseYamlTree("# first\na: 1\nb:\n  c: [x, '2']\n", "f"));
  ASSERT_NE(tree.Find("a"), nullptr);
  EXPECT_EQ(*tree.Find("a"), Value(1));
  EXPECT_EQ(tree.Find("a")->line(), 2);
  ASSERT_NE(tree.Find("b"), nullptr);
  ASSERT_NE(tree.Find("b")->Find("c"), nullptr);
  EXPECT_EQ(*tree.Find("b")->Find("c"), Value(Value::List{"x", "2"}));
  EXPECT_EQ(tree.Find("b")->Find("c")->line(), 4);
}

TEST(YamlTree, NothingIsNull) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n"}) {
    ASSERT_OK_AND_ASSIGN(const Value tree, ParseYamlTree(text, "f"));
    EXPECT_TRUE(tree.is_null()) << text;
  }
}

TEST(YamlTree, B45_ProblemsNameSourceAndLine) {
  EXPECT_THAT(ParseYamlTree("a: 1\na: 2\n", "my.yaml"),
              StatusIs(Code::kInvalidArgument, HasSubstr("my.yaml:2: a: ")));
  EXPECT_THAT(ParseYamlTree("a: 1\n\tb: 2\n", "my.yaml"),
              StatusIs(Code::kInvalidArgument, HasSubstr("my.yaml:2: ")));
  EXPECT_THAT(ParseYamlTree("a: 1\n---\nb: 1\n", "my.yaml"),
              StatusIs(Code::kInvalidArgument, HasSubstr("second document")));
  EXPECT_THAT(ParseYamlTree(std::string(100'000, '['), "my.yaml"),
              StatusIs(Code::kInvalidArgument));
}

}  // namespace
}  // namespace fl::spec
