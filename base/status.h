// Status and Result<T>: how every fallible function of this project reports failure.
//
// Codes equal gRPC's numbers, so that the wire border maps them one to one. A message reads from
// the outer action to the inner cause, lower case, without a final period, errno by name:
//   spool: append record 812: write 000007.log: ENOSPC (No space left on device)
// Retryable or not is said by the code (kUnavailable, kAborted, kResourceExhausted), never by the
// text.
//
// Thread safety: values; const methods may be called concurrently.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pipeyard {

enum class StatusCode : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// "INVALID_ARGUMENT" and so on; "CODE_17" for a number that is none of the above.
std::string StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status Ok() { return Status(); }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same code with "context: " before the message; OK stays OK. Call once per layer on the way
  // up.
  Status WithContext(std::string_view context) const;

  // "OK", or the message followed by the code's name in brackets.
  std::string ToString() const;

  friend bool operator==(const Status&, const Status&) = default;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

Status InvalidArgument(std::string message);
Status NotFound(std::string message);
Status AlreadyExists(std::string message);
Status FailedPrecondition(std::string message);
Status ResourceExhausted(std::string message);
Status OutOfRange(std::string message);
Status Unimplemented(std::string message);
Status Internal(std::string message);
Status Unavailable(std::string message);
Status DataLoss(std::string message);
Status DeadlineExceeded(std::string message);
Status Cancelled(std::string message);
Status Aborted(std::string message);

// "ENOSPC (No space left on device)"; the number where the C library knows no name.
std::string ErrnoText(int error);

// Maps errno to the nearest code (ENOENT kNotFound, EEXIST kAlreadyExists, ENOSPC
// kResourceExhausted, EACCES kPermissionDenied, EAGAIN kUnavailable, other kInternal); the message
// is "what: ERRNO (text)".
Status ErrnoStatus(std::string_view what, int error);

// A value, or the Status that says why there is none. Never holds an OK status without a value.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by intent
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by intent
    assert(!status_.ok());
    if (status_.ok())
      status_ = Status(StatusCode::kInternal, "an OK status was given where a value was due");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  // Precondition of all four: ok().
  const T& value() const& { return *value_; }
  T& value() & { return *value_; }
  T&& value() && { return std::move(*value_); }
  const T& operator*() const& { return *value_; }
  T& operator*() & { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  const T* operator->() const { return &*value_; }
  T* operator->() { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace pipeyard

#define PIPEYARD_CONCAT_INNER(a, b) a##b
#define PIPEYARD_CONCAT(a, b) PIPEYARD_CONCAT_INNER(a, b)

// Returns the Status of `expression` from the enclosing function unless it is OK.
#define PIPEYARD_RETURN_IF_ERROR(expression)                                      \
  do {                                                                            \
    if (::pipeyard::Status pipeyard_status = (expression); !pipeyard_status.ok()) \
      return pipeyard_status;                                                     \
  } while (false)

// PIPEYARD_ASSIGN_OR_RETURN(auto file, env.Open(path)): declares `file`, or returns the Status.
#define PIPEYARD_ASSIGN_OR_RETURN(declaration, expression)                                  \
  PIPEYARD_ASSIGN_OR_RETURN_INNER(PIPEYARD_CONCAT(pipeyard_result_, __LINE__), declaration, \
                                  expression)
#define PIPEYARD_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                            \
  if (!result.ok()) return result.status();                              \
  declaration = std::move(result).value()
