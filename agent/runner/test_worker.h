// What the test worker does, chosen by WorkerRequest.seed.
#pragma once

#include <cstdint>

namespace pipeyard::runner {

enum class TestWorkerAct : uint64_t {
  kVoid,          // leaves a sound result, void/test
  kFail,          // prints, then exit status 3
  kDie,           // SIGKILL
  kHang,          // never ends
  kStop,          // SIGSTOP to itself
  kLeaveNothing,  // exit status 0 without a result
  kOtherAttempt,  // a result of another attempt
  kPrintMuch,     // 1.1 MB on stdout, then as kVoid
};

}  // namespace pipeyard::runner
