// ControlClient: the controller as the CLI sees it. The only file of the CLI that knows gRPC is
// client.cc.
//
// Every call has a deadline. A Status of kUnavailable, kDeadlineExceeded or kUnimplemented names
// the address and what to do. Thread safety: calls from one thread at a time, but for
// Cancel(), which any thread may call.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/units.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::cli {

class ControlClient {
 public:
  // Connects and checks the protocol version. Errors: kUnavailable where nobody answers within
  // `timeout` or the answer is no controller's; kFailedPrecondition never: another version is
  // kUnauthenticated, so that it ends as exit 4.
  static Result<std::unique_ptr<ControlClient>> Connect(const std::string& address, Nanos timeout);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  const std::string& address() const;
  const v1::Controller& controller() const;

  Result<v1::SubmitSweepResponse> SubmitSweep(const v1::SubmitSweepRequest& request);
  Result<v1::Plan> PlanSweep(const v1::PlanSweepRequest& request);
  Result<v1::ListRunsResponse> ListRuns(const v1::ListRunsRequest& request);
  Result<v1::Run> GetRun(const std::string& run);
  Result<v1::AttemptLog> GetLog(const v1::GetLogRequest& request);
  Result<v1::RunProgress> CancelRun(const std::string& run);
  Result<v1::ListHostsResponse> ListHosts();
  Result<v1::Host> GetHost(const std::string& host);
  Result<v1::DiffResponse> Diff(const std::string& a, const std::string& b, bool is_forced = false);

  // Calls `on_progress` for each message until the run is terminal. kCancelled after Cancel().
  // A stream that breaks is kUnavailable: the run goes on without it.
  Status WatchRun(const std::string& run,
                  const std::function<void(const v1::RunProgress&)>& on_progress);
  // Ends the call that is waiting, with kCancelled, and every later WatchRun().
  void Cancel();

 private:
  struct State;
  explicit ControlClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pipeyard::cli
