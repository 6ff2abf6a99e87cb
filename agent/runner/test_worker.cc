// Stands in for pipeyard-worker in the runner's tests. Called as the agent calls the real one; the
// request's seed says how it behaves (test_worker.h).
#include "agent/runner/test_worker.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "pipeyard/v1/worker.pb.h"

namespace pipeyard::runner {
namespace {

void WriteResult(const std::string& path, const v1::WorkerResult& result) {
  std::ofstream(path, std::ios::binary) << result.SerializeAsString();
}

int Act(const v1::WorkerRequest& request, const std::string& result_path) {
  v1::WorkerResult result;
  result.set_attempt_id(request.attempt_id());
  result.set_outcome(v1::OUTCOME_VOID);
  result.set_reason_code("test");
  result.set_elapsed_ns(5);
  switch (static_cast<TestWorkerAct>(request.seed())) {
    case TestWorkerAct::kVoid:
      break;
    case TestWorkerAct::kFail:
      std::fputs("to stdout\n", stdout);
      std::fputs("the cause\n", stderr);
      return 3;
    case TestWorkerAct::kDie:
      ::raise(SIGKILL);
      return 0;
    case TestWorkerAct::kHang:
      for (;;) ::pause();
    case TestWorkerAct::kStop:
      for (;;) ::raise(SIGSTOP);
    case TestWorkerAct::kLeaveNothing:
      return 0;
    case TestWorkerAct::kOtherAttempt:
      result.set_attempt_id("other");
      break;
    case TestWorkerAct::kPrintMuch:
      for (int i = 0; i < 100'000; ++i) std::puts("0123456789");
      break;
  }
  WriteResult(result_path, result);
  return 0;
}

}  // namespace
}  // namespace pipeyard::runner

int main(int argc, char** argv) {
  // launch --parent PID --request FILE -- run --request FILE --result FILE
  if (argc != 12 || std::strcmp(argv[1], "launch") != 0 || std::strcmp(argv[7], "run") != 0)
    return 2;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pipeyard::v1::WorkerRequest request;
  std::ifstream file(argv[9], std::ios::binary);
  if (!request.ParseFromIstream(&file)) return 2;
  return pipeyard::runner::Act(request, argv[11]);
}
