#include "controller/cli/exit_code.h"

namespace pipeyard::cli {

int ExitCodeFor(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return kDone;
    case StatusCode::kInvalidArgument:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kAlreadyExists:
    case StatusCode::kOutOfRange:
    case StatusCode::kUnimplemented:
      return kUsage;
    case StatusCode::kNotFound:
      return kNoSuchThing;
    case StatusCode::kCancelled:
      return kInterrupted;
    default:
      return kController;
  }
}

}  // namespace pipeyard::cli
