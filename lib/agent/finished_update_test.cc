#include "agent/finished_update.h"

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"

namespace fl::agent {
namespace {

using base::Digest;
using base::IsOk;

class FinishedUpdateTest : public testing::Test {
 protected:
  FinishedUpdateTest() {
    FL_CHECK(base::WriteFileAtomically(weights_, "weights").ok());
    FL_CHECK(WriteFinishedUpdate(record_, update_).ok());
  }

  const base::TemporaryDirectory folder_;
  const base::Path weights_ = folder_ / "update.safetensors";
  const base::Path record_ = folder_ / "finished.json";
  const FinishedUpdate update_{.cause = Digest::Of("task"),
                               .digest = Digest::Of("weights"),
                               .size = 7,
                               .samples = int64_t{1} << 40,
                               .steps = 3,
                               .metrics = {{"loss", 0.1}, {"größe", -2e-300}}};
};

TEST_F(FinishedUpdateTest, IsReadAsItWasWritten) {
  EXPECT_EQ(ReadFinishedUpdate(record_, update_.cause, weights_), update_);
}

TEST_F(FinishedUpdateTest, CountsOnlyForItsTaskAndItsBytes) {
  EXPECT_EQ(ReadFinishedUpdate(record_, Digest::Of("another task"), weights_), std::nullopt);
  for (const char* changed : {"Weights", "weights and more", ""}) {
    ASSERT_THAT(base::WriteFileAtomically(weights_, changed), IsOk());
    EXPECT_EQ(ReadFinishedUpdate(record_, update_.cause, weights_), std::nullopt) << changed;
  }
  ASSERT_THAT(base::RemoveFile(weights_), IsOk());
  EXPECT_EQ(ReadFinishedUpdate(record_, update_.cause, weights_), std::nullopt);
}

TEST_F(FinishedUpdateTest, ADamagedRecordIsNone) {
  ASSERT_OK_AND_ASSIGN(const std::string whole, base::ReadFile(record_));
  for (size_t length = 0; length < whole.size(); length += 7) {
    ASSERT_THAT(base::WriteFileAtomically(record_, whole.substr(0, length)), IsOk());
    EXPECT_EQ(ReadFinishedUpdate(record_, update_.cause, weights_), std::nullopt);
  }
  ASSERT_THAT(base::RemoveFile(record_), IsOk());
  EXPECT_EQ(ReadFinishedUpdate(record_, update_.cause, weights_), std::nullopt);
}

}  // namespace
}  // namespace fl::agent
