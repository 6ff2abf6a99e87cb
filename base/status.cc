#include "base/status.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace pipeyard {

std::string StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "OK";
    case StatusCode::kCancelled:
      return "CANCELLED";
    case StatusCode::kUnknown:
      return "UNKNOWN";
    case StatusCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case StatusCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case StatusCode::kNotFound:
      return "NOT_FOUND";
    case StatusCode::kAlreadyExists:
      return "ALREADY_EXISTS";
    case StatusCode::kPermissionDenied:
      return "PERMISSION_DENIED";
    case StatusCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case StatusCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case StatusCode::kAborted:
      return "ABORTED";
    case StatusCode::kOutOfRange:
      return "OUT_OF_RANGE";
    case StatusCode::kUnimplemented:
      return "UNIMPLEMENTED";
    case StatusCode::kInternal:
      return "INTERNAL";
    case StatusCode::kUnavailable:
      return "UNAVAILABLE";
    case StatusCode::kDataLoss:
      return "DATA_LOSS";
    case StatusCode::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return fmt::format("CODE_{}", static_cast<int>(code));
}

Status Status::WithContext(std::string_view context) const {
  if (ok()) return *this;
  return Status(code_, fmt::format("{}: {}", context, message_));
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  return fmt::format("{} [{}]", message_, StatusCodeName(code_));
}

Status InvalidArgument(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
Status NotFound(std::string message) { return {StatusCode::kNotFound, std::move(message)}; }
Status AlreadyExists(std::string message) {
  return {StatusCode::kAlreadyExists, std::move(message)};
}
Status FailedPrecondition(std::string message) {
  return {StatusCode::kFailedPrecondition, std::move(message)};
}
Status ResourceExhausted(std::string message) {
  return {StatusCode::kResourceExhausted, std::move(message)};
}
Status OutOfRange(std::string message) { return {StatusCode::kOutOfRange, std::move(message)}; }
Status Unimplemented(std::string message) {
  return {StatusCode::kUnimplemented, std::move(message)};
}
Status Internal(std::string message) { return {StatusCode::kInternal, std::move(message)}; }
Status Unavailable(std::string message) { return {StatusCode::kUnavailable, std::move(message)}; }
Status DataLoss(std::string message) { return {StatusCode::kDataLoss, std::move(message)}; }
Status DeadlineExceeded(std::string message) {
  return {StatusCode::kDeadlineExceeded, std::move(message)};
}
Status Cancelled(std::string message) { return {StatusCode::kCancelled, std::move(message)}; }
Status Aborted(std::string message) { return {StatusCode::kAborted, std::move(message)}; }

std::string ErrnoText(int error) {
  const char* name = ::strerrorname_np(error);
  const char* description = ::strerrordesc_np(error);
  if (name == nullptr || description == nullptr) return fmt::format("errno {}", error);
  return fmt::format("{} ({})", name, description);
}

Status ErrnoStatus(std::string_view what, int error) {
  StatusCode code = StatusCode::kInternal;
  switch (error) {
    case ENOENT:
      code = StatusCode::kNotFound;
      break;
    case EEXIST:
      code = StatusCode::kAlreadyExists;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = StatusCode::kPermissionDenied;
      break;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      code = StatusCode::kResourceExhausted;
      break;
    case EAGAIN:
    case EINTR:
    case ECONNREFUSED:
      code = StatusCode::kUnavailable;
      break;
    case EINVAL:
      code = StatusCode::kInvalidArgument;
      break;
    default:
      break;
  }
  return Status(code, fmt::format("{}: {}", what, ErrnoText(error)));
}

}  // namespace pipeyard
