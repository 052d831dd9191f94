#include "base/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <set>
#include <string>

#include "base/testing/status_matchers.h"

namespace fl::base {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kCodes = static_cast<int>(Code::kDataLoss) + 1;

TEST(Status, TableHasARowForEachCode) {
  std::set<std::string_view> names;
  for (int i = 0; i < kCodes; ++i) {
    const auto code = static_cast<Code>(i);
    const CodeInfo& info = Describe(code);
    EXPECT_EQ(info.code, code);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(CodeFromName(info.name), code);
    EXPECT_EQ(info.http_status < 400, code == Code::kOk) << info.name;
    EXPECT_THAT(info.exit_code, AnyOf(0, 1, 2, 4, 5, 124, 130)) << info.name;
    EXPECT_EQ(info.exit_code == 0, code == Code::kOk) << info.name;
  }
  EXPECT_EQ(CodeFromName("NoSuchCode"), std::nullopt);
  EXPECT_EQ(CodeFromName(""), std::nullopt);
}

TEST(Status, HttpStatusLeadsBackToTheCodeOrToOneOfTheSameMeaning) {
  for (int i = 0; i < kCodes; ++i) {
    const auto code = static_cast<Code>(i);
    const Code back = CodeFromHttpStatus(Describe(code).http_status);
    EXPECT_EQ(Describe(back).http_status, Describe(code).http_status) << Describe(code).name;
  }
  EXPECT_EQ(CodeFromHttpStatus(204), Code::kOk);
  EXPECT_EQ(CodeFromHttpStatus(304), Code::kOk);
  EXPECT_EQ(CodeFromHttpStatus(418), Code::kFailedPrecondition);
  EXPECT_EQ(CodeFromHttpStatus(429), Code::kUnavailable);
  EXPECT_EQ(CodeFromHttpStatus(502), Code::kUnavailable);
  EXPECT_EQ(CodeFromHttpStatus(599), Code::kUnavailable);
}

TEST(Status, OnlyWhatMaySucceedUnchangedIsRetryable) {
  EXPECT_TRUE(Unavailable("").retryable());
  EXPECT_TRUE(DeadlineExceeded("").retryable());
  EXPECT_TRUE(Aborted("").retryable());
  EXPECT_FALSE(InvalidArgument("").retryable());
  EXPECT_FALSE(PermissionDenied("").retryable());
  EXPECT_FALSE(Cancelled("").retryable());
  EXPECT_FALSE(OkStatus().retryable());
}

TEST(Status, SaysWhatWhereAndWhatToDo) {
  const Status status = NotFound("no model \"digits\"", "fl models list").WithContext("registry");
  EXPECT_EQ(status.ToString(), "NotFound: registry: no model \"digits\" (fl models list)");
  EXPECT_EQ(status.WithHint("another").hint(), "fl models list");
  EXPECT_EQ(Internal("x").WithHint("report it").ToString(), "Internal: x (report it)");
  EXPECT_EQ(OkStatus().ToString(), "Ok");
  EXPECT_THAT(OkStatus().WithContext("a").WithHint("b"), IsOk());
  EXPECT_EQ(OkStatus().WithContext("a").WithHint("b"), OkStatus());
}

TEST(Status, FromErrnoNamesWhatTheCallerDoesNext) {
  EXPECT_THAT(FromErrno(ENOENT, "open /x"),
              StatusIs(Code::kNotFound, "open /x: No such file or directory"));
  EXPECT_THAT(FromErrno(EACCES, "open /x"), StatusIs(Code::kPermissionDenied));
  EXPECT_THAT(FromErrno(EPERM, "open /x"), StatusIs(Code::kPermissionDenied));
  for (const int full : {ENOSPC, EDQUOT, EFBIG}) {
    const Status status = FromErrno(full, "write /x");
    EXPECT_THAT(status, StatusIs(Code::kResourceExhausted, HasSubstr("write /x")));
    EXPECT_NE(status.hint(), "");
  }
  EXPECT_THAT(FromErrno(EIO, "read /x"), StatusIs(Code::kInternal));
}

TEST(Result, HoldsAValueOrTheReasonThereIsNone) {
  Result<std::unique_ptr<int>> value(std::make_unique<int>(7));
  ASSERT_TRUE(value.ok());
  EXPECT_THAT(value.status(), IsOk());
  EXPECT_EQ(**value, 7);
  const std::unique_ptr<int> moved = *std::move(value);
  EXPECT_EQ(*moved, 7);

  const Result<std::string> none(NotFound("gone"));
  EXPECT_FALSE(none.ok());
  EXPECT_THAT(none, StatusIs(Code::kNotFound, "gone"));
  EXPECT_EQ(none.value_or("fallback"), "fallback");
  EXPECT_EQ(Result<std::string>("there").value_or("fallback"), "there");
  EXPECT_EQ(Result<std::string>("there")->size(), 5U);
}

TEST(ResultDeathTest, AbortsWhereAnInvariantIsBroken) {
  const Result<int> none(NotFound("no such round"));
  EXPECT_DEATH(static_cast<void>(none.value()), "check failed.*no such round");
  EXPECT_DEATH(Result<int>{OkStatus()}, "check failed");
  EXPECT_DEATH(FL_CHECK_MSG(1 + 1 == 3, "sums"), "status_test.cc:[0-9]+: check failed.*sums");
}

Result<int> Half(int value) {
  if (value % 2 != 0) return InvalidArgument(std::to_string(value) + " is odd");
  return value / 2;
}
Status Quarter(int value, int& out) {
  FL_ASSIGN_OR_RETURN(const int half, Half(value));
  FL_ASSIGN_OR_RETURN(out, Half(half));
  FL_RETURN_IF_ERROR(out > 100 ? OutOfRange("too large") : OkStatus());
  return OkStatus();
}

TEST(Result, MacrosPassTheFirstErrorOn) {
  int out = 0;
  EXPECT_THAT(Quarter(8, out), IsOk());
  EXPECT_EQ(out, 2);
  EXPECT_THAT(Quarter(7, out), StatusIs(Code::kInvalidArgument, "7 is odd"));
  EXPECT_THAT(Quarter(6, out), StatusIs(Code::kInvalidArgument, "3 is odd"));
  EXPECT_EQ(out, 2);
  EXPECT_THAT(Quarter(800, out), StatusIs(Code::kOutOfRange));
}

}  // namespace
}  // namespace fl::base
