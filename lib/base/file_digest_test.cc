#include "base/file_digest.h"

#include <gtest/gtest.h>

#include <string>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"

namespace fl::base {
namespace {

TEST(FileDigest, IsTheDigestOfTheBytes) {
  const TemporaryDirectory folder;
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += std::to_string(i);  // more than one piece
  for (const std::string& text : {std::string(), std::string("abc"), content}) {
    ASSERT_THAT(WriteFileAtomically(folder / "file", text), IsOk());
    ASSERT_OK_AND_ASSIGN(const FileDigest read, DigestOfFile(folder / "file"));
    EXPECT_EQ(read.digest, Digest::Of(text));
    EXPECT_EQ(read.size, text.size());
  }
}

TEST(FileDigest, SaysWhatIsMissing) {
  EXPECT_THAT(DigestOfFile("/nowhere/at/all"),
              StatusIs(Code::kNotFound, testing::HasSubstr("/nowhere/at/all")));
}

}  // namespace
}  // namespace fl::base
