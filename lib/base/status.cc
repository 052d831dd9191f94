#include "base/status.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fl::base {
namespace internal {

void CheckFailed(const char* file, int line, const char* condition, std::string_view detail) {
  std::fprintf(stderr, "%s:%d: check failed: %s%s%.*s\n", file, line, condition,
               detail.empty() ? "" : ": ", static_cast<int>(detail.size()), detail.data());
  std::abort();
}

}  // namespace internal

namespace {

constexpr int kFailed = 1;
constexpr int kNotAllowed = 2;
constexpr int kBadInput = 4;
constexpr int kOurFault = 5;
constexpr int kTimeout = 124;
constexpr int kInterrupted = 130;

constexpr std::array<CodeInfo, 16> kCodes = {{
    {Code::kOk, "Ok", false, 200, 0},
    {Code::kCancelled, "Cancelled", false, 499, kInterrupted},
    {Code::kInvalidArgument, "InvalidArgument", false, 400, kBadInput},
    {Code::kDeadlineExceeded, "DeadlineExceeded", true, 504, kTimeout},
    {Code::kNotFound, "NotFound", false, 404, kFailed},
    {Code::kAlreadyExists, "AlreadyExists", false, 409, kFailed},
    {Code::kPermissionDenied, "PermissionDenied", false, 403, kNotAllowed},
    {Code::kUnauthenticated, "Unauthenticated", false, 401, kNotAllowed},
    {Code::kResourceExhausted, "ResourceExhausted", false, 507, kFailed},
    {Code::kFailedPrecondition, "FailedPrecondition", false, 409, kFailed},
    {Code::kAborted, "Aborted", true, 409, kFailed},
    {Code::kOutOfRange, "OutOfRange", false, 413, kBadInput},
    {Code::kUnimplemented, "Unimplemented", false, 501, kFailed},
    {Code::kInternal, "Internal", false, 500, kOurFault},
    {Code::kUnavailable, "Unavailable", true, 503, kNotAllowed},
    {Code::kDataLoss, "DataLoss", false, 500, kFailed},
}};

}  // namespace

const CodeInfo& Describe(Code code) {
  const CodeInfo& info = kCodes.at(static_cast<size_t>(code));
  FL_CHECK(info.code == code);
  return info;
}

Code CodeFromHttpStatus(int http_status) {
  if (http_status >= 200 && http_status < 400) return Code::kOk;
  switch (http_status) {
    case 400:
      return Code::kInvalidArgument;
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    case 408:
      return Code::kDeadlineExceeded;
    case 409:
      return Code::kFailedPrecondition;
    case 413:
      return Code::kOutOfRange;
    case 429:
      return Code::kUnavailable;
    case 499:
      return Code::kCancelled;
    case 500:
      return Code::kInternal;
    case 501:
      return Code::kUnimplemented;
    case 504:
      return Code::kDeadlineExceeded;
    case 507:
      return Code::kResourceExhausted;
    default:
      return http_status >= 500 ? Code::kUnavailable : Code::kFailedPrecondition;
  }
}

std::optional<Code> CodeFromName(std::string_view name) {
  for (const CodeInfo& info : kCodes) {
    if (info.name == name) return info.code;
  }
  return std::nullopt;
}

Status Status::WithContext(std::string_view where) const {
  if (ok()) return *this;
  return Status(code_, std::string(where) + ": " + message_, hint_);
}

Status Status::WithHint(std::string hint) const {
  if (ok() || !hint_.empty()) return *this;
  return Status(code_, message_, std::move(hint));
}

std::string Status::ToString() const {
  if (ok()) return "Ok";
  std::string text(Describe(code_).name);
  text += ": " + message_;
  if (!hint_.empty()) text += " (" + hint_ + ")";
  return text;
}

#define FL_INTERNAL_DEFINE(Name)                                       \
  Status Name(std::string message, std::string hint) {                 \
    return Status(Code::k##Name, std::move(message), std::move(hint)); \
  }
FL_INTERNAL_DEFINE(Cancelled)
FL_INTERNAL_DEFINE(InvalidArgument)
FL_INTERNAL_DEFINE(DeadlineExceeded)
FL_INTERNAL_DEFINE(NotFound)
FL_INTERNAL_DEFINE(AlreadyExists)
FL_INTERNAL_DEFINE(PermissionDenied)
FL_INTERNAL_DEFINE(Unauthenticated)
FL_INTERNAL_DEFINE(ResourceExhausted)
FL_INTERNAL_DEFINE(FailedPrecondition)
FL_INTERNAL_DEFINE(Aborted)
FL_INTERNAL_DEFINE(OutOfRange)
FL_INTERNAL_DEFINE(Unimplemented)
FL_INTERNAL_DEFINE(Internal)
FL_INTERNAL_DEFINE(Unavailable)
FL_INTERNAL_DEFINE(DataLoss)
#undef FL_INTERNAL_DEFINE

Status FromErrno(int error_number, std::string_view what) {
  std::string message = std::string(what) + ": " + std::strerror(error_number);
  switch (error_number) {
    case ENOENT:
      return NotFound(std::move(message));
    case EACCES:
    case EPERM:
      return PermissionDenied(std::move(message));
    case EEXIST:
      return AlreadyExists(std::move(message));
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return ResourceExhausted(std::move(message), "free some disk space");
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ResourceExhausted(std::move(message));
    case EINVAL:
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
      return InvalidArgument(std::move(message));
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EAGAIN:
      return Unavailable(std::move(message));
    case ETIMEDOUT:
      return DeadlineExceeded(std::move(message));
    default:
      return Internal(std::move(message));
  }
}

}  // namespace fl::base
