#include "controller/cli/client.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "pipeyard/v1/control.grpc.pb.h"
#include "proto/grpc/endpoint.h"
#include "proto/session/messages.h"

namespace pipeyard::cli {
namespace {

// Longer than any answer of a healthy controller; `diff` of the largest runs included.
constexpr Nanos kCallTimeout = Seconds(60);

std::chrono::system_clock::time_point DeadlineIn(Nanos timeout) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::microseconds>(timeout);
}

// A controller that was started a moment ago, on the line above, needs that long to listen.
constexpr Nanos kStartGrace = Seconds(1);
constexpr Nanos kStartPoll = Milliseconds(100);

// "Connection refused" of gRPC's "failed to connect to all addresses; last error: UNKNOWN:
// ipv4:127.0.0.1:7420: Failed to connect to remote host: Connection refused".
std::string PlainReason(const std::string& text) {
  const size_t cut = text.rfind(": ");
  if (cut == std::string::npos) return text;
  if (text.starts_with("failed to connect")) return text.substr(cut + 2);
  if (text.starts_with("DNS resolution failed")) return "no such name: " + text.substr(cut + 2);
  return text;
}

bool IsOfThisMachine(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return grpc_edge::IsLoopback(host);
}

}  // namespace

struct ControlClient::State {
  std::string address;
  v1::Controller controller;
  std::unique_ptr<v1::ControlService::Stub> stub;
  Mutex mutex;
  grpc::ClientContext* active GUARDED_BY(mutex) = nullptr;
  bool is_canceled GUARDED_BY(mutex) = false;
  bool is_reached = false;

  Status ToStatus(const grpc::Status& status) const {
    const Status plain = grpc_edge::FromGrpc(status);
    const StatusCode code = plain.code();
    if (is_reached && code == StatusCode::kDeadlineExceeded) {
      return {code, fmt::format("the controller at {} was reached, but has not answered for {}; it "
                                "is overloaded or stopped",
                                address, FormatDuration(kCallTimeout))};
    }
    if (is_reached && code == StatusCode::kUnavailable) {
      return {code, fmt::format("the controller at {} was reached, but then: {}; see whether it "
                                "runs and what it logs",
                                address, PlainReason(status.error_message()))};
    }
    if (code == StatusCode::kUnavailable || code == StatusCode::kDeadlineExceeded) {
      const std::string remedy =
          IsOfThisMachine(address)
              ? fmt::format("start it with `pipeyard-controller --listen {}`", address)
              : "start pipeyard-controller there";
      return {code, fmt::format("the controller at {} cannot be reached ({}); {}, or name another "
                                "with --controller",
                                address, PlainReason(status.error_message()), remedy)};
    }
    if (code == StatusCode::kUnimplemented) {
      return Unavailable(
          fmt::format("what answers at {} is no Pipeyard controller of this version", address));
    }
    return plain;
  }

  template <typename Request, typename Response>
  using Method = grpc::Status (v1::ControlService::Stub::*)(grpc::ClientContext*, const Request&,
                                                            Response*);

  template <typename Request, typename Response>
  Result<Response> Call(Method<Request, Response> method, const Request& request,
                        Nanos timeout = kCallTimeout) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineIn(timeout));
    Response response;
    SetActive(&context);
    const grpc::Status status = (stub.get()->*method)(&context, request, &response);
    SetActive(nullptr);
    if (status.error_code() == grpc::StatusCode::CANCELLED) return Cancelled("interrupted");
    if (!status.ok()) return ToStatus(status);
    return response;
  }

  void SetActive(grpc::ClientContext* context) {
    MutexLock lock(mutex);
    active = context;
  }
};

ControlClient::ControlClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
ControlClient::~ControlClient() = default;

const std::string& ControlClient::address() const { return state_->address; }
const v1::Controller& ControlClient::controller() const { return state_->controller; }

Result<std::unique_ptr<ControlClient>> ControlClient::Connect(const std::string& address,
                                                              Nanos timeout) {
  if (const Status status = grpc_edge::CheckDialAddress(address); !status.ok()) {
    return Status(status.code(), "--controller " + status.message());
  }
  auto state = std::make_unique<State>();
  state->address = address;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(
      -1);  // `run show` of a large run; the sender is the user's own controller
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  grpc_edge::SetKeepalive(arguments);
  // Or a new channel would inherit the failure of the one before, and how long that is to wait.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto ask = [&] {
    state->stub = v1::ControlService::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    return state->Call(&v1::ControlService::Stub::GetController, v1::GetControllerRequest(),
                       timeout);
  };
  Result<v1::Controller> answer = ask();
  for (Nanos waited(0); waited < kStartGrace && answer.status().code() == StatusCode::kUnavailable;
       waited += kStartPoll) {
    std::this_thread::sleep_for(kStartPoll);
    answer = ask();
  }
  PIPEYARD_ASSIGN_OR_RETURN(state->controller, std::move(answer));
  if (state->controller.protocol_version() != session::kProtocolVersion) {
    return Status(StatusCode::kUnauthenticated,
                  fmt::format("the controller at {} (version {}) speaks protocol {}, this program "
                              "speaks {}; use programs of one version",
                              address, state->controller.version(),
                              state->controller.protocol_version(), session::kProtocolVersion));
  }
  state->is_reached = true;
  return std::unique_ptr<ControlClient>(new ControlClient(std::move(state)));
}

Result<v1::SubmitSweepResponse> ControlClient::SubmitSweep(const v1::SubmitSweepRequest& request) {
  return state_->Call(&v1::ControlService::Stub::SubmitSweep, request);
}

Result<v1::Plan> ControlClient::PlanSweep(const v1::PlanSweepRequest& request) {
  return state_->Call(&v1::ControlService::Stub::PlanSweep, request);
}

Result<v1::ListRunsResponse> ControlClient::ListRuns(const v1::ListRunsRequest& request) {
  return state_->Call(&v1::ControlService::Stub::ListRuns, request);
}

Result<v1::Run> ControlClient::GetRun(const std::string& run) {
  v1::GetRunRequest request;
  request.set_run(run);
  return state_->Call(&v1::ControlService::Stub::GetRun, request);
}

Result<v1::AttemptLog> ControlClient::GetLog(const v1::GetLogRequest& request) {
  return state_->Call(&v1::ControlService::Stub::GetLog, request);
}

Result<v1::RunProgress> ControlClient::CancelRun(const std::string& run) {
  v1::CancelRunRequest request;
  request.set_run(run);
  return state_->Call(&v1::ControlService::Stub::CancelRun, request);
}

Result<v1::ListHostsResponse> ControlClient::ListHosts() {
  return state_->Call(&v1::ControlService::Stub::ListHosts, v1::ListHostsRequest());
}

Result<v1::Host> ControlClient::GetHost(const std::string& host) {
  v1::GetHostRequest request;
  request.set_host(host);
  return state_->Call(&v1::ControlService::Stub::GetHost, request);
}

Result<v1::DiffResponse> ControlClient::Diff(const std::string& a, const std::string& b,
                                             bool is_forced) {
  v1::DiffRequest request;
  request.set_a(a);
  request.set_b(b);
  request.set_force(is_forced);
  return state_->Call(&v1::ControlService::Stub::Diff, request);
}

Status ControlClient::WatchRun(const std::string& run,
                               const std::function<void(const v1::RunProgress&)>& on_progress) {
  grpc::ClientContext context;  // no deadline: a run takes as long as it takes
  {
    MutexLock lock(state_->mutex);
    if (state_->is_canceled) return Cancelled("watching was interrupted");
    state_->active = &context;
  }
  v1::GetRunRequest request;
  request.set_run(run);
  v1::RunProgress progress;
  const auto reader = state_->stub->WatchRun(&context, request);
  while (reader->Read(&progress)) on_progress(progress);
  const grpc::Status status = reader->Finish();
  MutexLock lock(state_->mutex);
  state_->active = nullptr;
  if (state_->is_canceled) return Cancelled("watching was interrupted");
  return status.ok() ? Status::Ok() : state_->ToStatus(status);
}

void ControlClient::Cancel() {
  MutexLock lock(state_->mutex);
  state_->is_canceled = true;
  if (state_->active != nullptr) state_->active->TryCancel();
}

}  // namespace pipeyard::cli
