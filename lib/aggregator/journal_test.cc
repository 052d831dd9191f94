#include "aggregator/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"

namespace fl::aggregator {
namespace {

using base::IsOk;
using base::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JournalTest : public ::testing::Test {
 protected:
  std::vector<std::string> Lines() {
    base::Result<Journal::Opened> opened = Journal::Open(path);
    EXPECT_THAT(opened, IsOk());
    return opened.ok() ? opened->lines : std::vector<std::string>();
  }
  void Write(std::initializer_list<std::string> lines) {
    ASSERT_OK_AND_ASSIGN(Journal::Opened opened, Journal::Open(path));
    for (const std::string& line : lines) {
      ASSERT_THAT(opened.journal.Append(line, false), IsOk());
    }
  }
  base::TemporaryDirectory folder;
  const base::Path path = folder / "deep" / "journal.jsonl";
};

TEST_F(JournalTest, KeepsLinesInOrderOverReopening) {
  Write({R"({"a":1})", R"({"b":2})"});
  Write({R"({"c":3})"});
  EXPECT_THAT(Lines(), ElementsAre(R"({"a":1})", R"({"b":2})", R"({"c":3})"));
}

TEST_F(JournalTest, EveryTornEndIsDroppedAndWrittenOver) {
  Write({R"({"a":1})", R"({"b":2})"});
  ASSERT_OK_AND_ASSIGN(const std::string whole, base::ReadFile(path));
  const size_t first_line = whole.find('\n') + 1;
  for (size_t cut = first_line; cut < whole.size(); ++cut) {
    ASSERT_THAT(base::WriteFileAtomically(path, whole.substr(0, cut)), IsOk());
    EXPECT_THAT(Lines(), ElementsAre(R"({"a":1})")) << cut;
    Write({R"({"c":3})"});
    EXPECT_THAT(Lines(), ElementsAre(R"({"a":1})", R"({"c":3})")) << cut;
  }
}

TEST_F(JournalTest, ADamagedLineBeforeTheLastIsAnErrorThatNamesIt) {
  Write({R"({"a":1})", R"({"b":2})", R"({"c":3})"});
  ASSERT_OK_AND_ASSIGN(std::string content, base::ReadFile(path));
  content[content.find("\"b\"") + 1] = 'x';
  ASSERT_THAT(base::WriteFileAtomically(path, content), IsOk());
  EXPECT_THAT(Journal::Open(path), StatusIs(base::Code::kDataLoss, HasSubstr("line 2 is damaged")));
}

}  // namespace
}  // namespace fl::aggregator
