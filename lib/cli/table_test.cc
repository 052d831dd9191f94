#include "cli/table.h"

#include <gtest/gtest.h>

#include "cli/style.h"

namespace fl::cli {
namespace {

TEST(Table, PadsByColumnsOfText) {
  Table table{.columns = {{.title = "NAME"}, {.title = "N", .right = true}, {.title = "LAST"}},
              .rows = {{"a", "7", "x"}, {"größer", "100", ""}}};
  EXPECT_EQ(table.ToText(false),
            "NAME       N   LAST\n"
            "a          7   x\n"
            "größer   100   -\n");
  EXPECT_EQ(Table{}.ToText(false), "");
}

TEST(Table, WideColumnsOnlyWhenAsked) {
  Table table{.columns = {{.title = "A"}, {.title = "B", .wide = true}}, .rows = {{"1", "2"}}};
  EXPECT_EQ(table.ToText(false), "A\n1\n");
  EXPECT_EQ(table.ToText(true), "A   B\n1   2\n");
}

TEST(Style, ClipKeepsCharactersAndColoursWhole) {
  EXPECT_EQ(Clip("äöü", 2), "äö");
  EXPECT_EQ(Clip("\033[1mabc\033[0m", 2), "\033[1mab\033[0m");
  EXPECT_EQ(DisplayWidth("\033[1mäb\033[0m"), 2u);
}

}  // namespace
}  // namespace fl::cli
