#pragma once

/// GoogleTest matchers for Status and Result:
///   EXPECT_THAT(WriteFileAtomically(path, text), IsOk());
///   EXPECT_THAT(ReadFile(path), StatusIs(Code::kNotFound, HasSubstr("open")));
///   EXPECT_THAT(ReadFile(path), IsOkAndHolds("text"));
///   ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(path));

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "base/status.h"

namespace fl::base {

inline std::ostream& operator<<(std::ostream& out, Code code) { return out << Describe(code).name; }
inline std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << status.ToString();
}

namespace internal {
inline const Status& StatusOf(const Status& status) { return status; }
template <typename T>
Status StatusOf(const Result<T>& result) {
  return result.status();
}
}  // namespace internal

MATCHER(IsOk, negation ? "is an error" : "is OK") {
  const Status status = internal::StatusOf(arg);
  *result_listener << status;
  return status.ok();
}

/// The code, and what the message says.
MATCHER_P2(StatusIs, code, message, "") {
  const Status status = internal::StatusOf(arg);
  *result_listener << status;
  return status.code() == code &&
         ::testing::ExplainMatchResult(message, status.message(), result_listener);
}
MATCHER_P(StatusIs, code, "") {
  const Status status = internal::StatusOf(arg);
  *result_listener << status;
  return status.code() == code;
}

/// A Result with a value that matches.
MATCHER_P(IsOkAndHolds, value, "") {
  if (!arg.ok()) {
    *result_listener << arg.status();
    return false;
  }
  return ::testing::ExplainMatchResult(value, arg.value(), result_listener);
}

}  // namespace fl::base

/// Assigns the value of a Result to `lhs`, or ends the test with its error.
#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  FL_INTERNAL_ASSERT_OK_AND_ASSIGN(FL_INTERNAL_JOIN(fl_test_result_, __LINE__), lhs, expr)
#define FL_INTERNAL_ASSERT_OK_AND_ASSIGN(result, lhs, expr) \
  auto result = (expr);                                     \
  ASSERT_TRUE(result.ok()) << result.status().ToString();   \
  lhs = std::move(result).value()
