#pragma once

/// Errors as values. A function that can fail returns `Status` or `Result<T>`; exceptions stay at
/// the edge of libraries that throw. All types here may be used from any thread.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace fl::base {

/// Canonical codes, named by what the caller does next. `Describe` gives the one table of them.
enum class Code {
  kOk,
  kCancelled,           ///< somebody asked to stop
  kInvalidArgument,     ///< fix the input
  kDeadlineExceeded,    ///< time ran out; may be tried again
  kNotFound,            ///< no such thing
  kAlreadyExists,       ///< it is there, and different
  kPermissionDenied,    ///< known, but not allowed
  kUnauthenticated,     ///< not known; authenticate and try again
  kResourceExhausted,   ///< no room: disk, memory, quota
  kFailedPrecondition,  ///< not in this state; change the state first
  kAborted,             ///< lost a race; re-read, then try again
  kOutOfRange,          ///< past a limit that is named in the message
  kUnimplemented,       ///< not offered
  kInternal,            ///< a fault of ours
  kUnavailable,         ///< cannot reach it now; try again
  kDataLoss,            ///< stored bytes are damaged or gone
};

/// What a code means to the three kinds of callers.
struct CodeInfo {
  Code code;
  std::string_view name;  ///< e.g. "InvalidArgument", as it stands in JSON errors
  bool retryable;         ///< the same call may succeed later
  int http_status;        ///< e.g. 400
  int exit_code;          ///< exit status of the command-line programs
};

/// The row of the table for `code`.
const CodeInfo& Describe(Code code);

/// The code for an HTTP status: the inverse of the table where it is one, else by class
/// (4xx kFailedPrecondition, 5xx kUnavailable; 2xx and 3xx kOk).
Code CodeFromHttpStatus(int http_status);

/// The code named `name` in a JSON error, if any.
std::optional<Code> CodeFromName(std::string_view name);

/// Success, or a code with a message (what, where) and a hint (what to do), which may be empty.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message, std::string hint = "")
      : code_(code), message_(std::move(message)), hint_(std::move(hint)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  bool retryable() const { return Describe(code_).retryable; }

  /// The same error with `where` and ": " before its message; success stays success.
  Status WithContext(std::string_view where) const;
  /// The same error with a hint where it has none.
  Status WithHint(std::string hint) const;
  /// "Code: message (hint)" for logs.
  std::string ToString() const;

  friend bool operator==(const Status&, const Status&) = default;

 private:
  Code code_ = Code::kOk;
  std::string message_;
  std::string hint_;
};

inline Status OkStatus() { return {}; }
Status Cancelled(std::string message, std::string hint = "");
Status InvalidArgument(std::string message, std::string hint = "");
Status DeadlineExceeded(std::string message, std::string hint = "");
Status NotFound(std::string message, std::string hint = "");
Status AlreadyExists(std::string message, std::string hint = "");
Status PermissionDenied(std::string message, std::string hint = "");
Status Unauthenticated(std::string message, std::string hint = "");
Status ResourceExhausted(std::string message, std::string hint = "");
Status FailedPrecondition(std::string message, std::string hint = "");
Status Aborted(std::string message, std::string hint = "");
Status OutOfRange(std::string message, std::string hint = "");
Status Unimplemented(std::string message, std::string hint = "");
Status Internal(std::string message, std::string hint = "");
Status Unavailable(std::string message, std::string hint = "");
Status DataLoss(std::string message, std::string hint = "");

/// The error for `errno` value `error_number` while doing `what`, e.g. "open /x/y". ENOSPC, EDQUOT
/// and EFBIG are kResourceExhausted, ENOENT kNotFound, EACCES and EPERM kPermissionDenied.
Status FromErrno(int error_number, std::string_view what);

/// A value or the Status that says why there is none (never an OK Status).
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}        // NOLINT(google-explicit-constructor)
  Result(Status status) : state_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    FL_CHECK(!std::get<Status>(state_).ok());
  }

  bool ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }

  /// The value; aborts where there is none.
  const T& value() const& { return Checked(); }
  T& value() & { return const_cast<T&>(Checked()); }
  T&& value() && { return std::move(const_cast<T&>(Checked())); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &Checked(); }
  T* operator->() { return &value(); }
  T value_or(T fallback) const& { return ok() ? std::get<T>(state_) : std::move(fallback); }

 private:
  const T& Checked() const {
    FL_CHECK_MSG(ok(), std::get<Status>(state_).ToString());
    return std::get<T>(state_);
  }
  std::variant<T, Status> state_;
};

}  // namespace fl::base

#define FL_INTERNAL_JOIN2(a, b) a##b
#define FL_INTERNAL_JOIN(a, b) FL_INTERNAL_JOIN2(a, b)

/// Returns from the enclosing function if `expr`, a Status, is an error.
#define FL_RETURN_IF_ERROR(expr)                                    \
  do {                                                              \
    if (::fl::base::Status fl_status_ = (expr); !fl_status_.ok()) { \
      return fl_status_;                                            \
    }                                                               \
  } while (false)

/// Assigns the value of `expr`, a Result, to `lhs` (a declaration or a variable), or returns its
/// error from the enclosing function.
#define FL_ASSIGN_OR_RETURN(lhs, expr) \
  FL_INTERNAL_ASSIGN_OR_RETURN(FL_INTERNAL_JOIN(fl_result_, __LINE__), lhs, expr)
#define FL_INTERNAL_ASSIGN_OR_RETURN(result, lhs, expr) \
  auto result = (expr);                                 \
  if (!result.ok()) return result.status();             \
  lhs = std::move(result).value()
