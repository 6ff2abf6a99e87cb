#include "controller/api/control_service.h"

#include <grpcpp/grpcpp.h>

#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "pipeyard/v1/control.grpc.pb.h"
#include "proto/grpc/endpoint.h"

namespace pipeyard::api {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

std::string ActorOf(const CallbackServerContext& context) { return "cli:" + context.peer(); }

// Gives the core's reply to the call. gRPC keeps `response` until Finish().
template <typename Response>
core::Reply<Response> FinishWith(ServerUnaryReactor* reactor, Response* response) {
  return [reactor, response](Result<Response> result) {
    if (result.ok()) *response = std::move(*result);
    reactor->Finish(grpc_edge::ToGrpc(result.status()));
  };
}

// One WatchRun call. Its own mutex, because gRPC's reactions and the core's calls come from
// different threads; nothing but gRPC's start calls is done under it.
class WatchReactor final : public grpc::ServerWriteReactor<v1::RunProgress> {
 public:
  explicit WatchReactor(core::Core& core) : core_(core) {}

  // `self` keeps the reactor alive for the core's callbacks, which may come after OnDone().
  static WatchReactor* Start(core::Core& core, const v1::GetRunRequest& request) {
    auto self = std::make_shared<WatchReactor>(core);
    self->self_ = self;
    core.WatchRun(request,
                  {.on_progress = [self](const v1::RunProgress& p) { self->OnProgress(p); },
                   .on_end = [self](const Status& status) { self->End(status); }},
                  [self](core::WatchId id) { self->OnStarted(id); });
    return self.get();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      End(Cancelled("the client is gone"));
      OnGone();
    }
    MutexLock lock(mutex_);
    is_writing_ = false;
    Proceed();
  }

  void OnCancel() override {
    End(Cancelled("the client canceled"));
    OnGone();
  }

  void OnDone() override {
    // Destroyed here, or by the last callback that the core still holds.
    const std::shared_ptr<WatchReactor> last = std::move(self_);
  }

 private:
  void OnStarted(core::WatchId id) EXCLUDES(mutex_) {
    bool is_gone = false;
    {
      MutexLock lock(mutex_);
      watch_ = id;
      is_gone = is_gone_;
    }
    if (is_gone) core_.StopWatching(id);
  }

  void OnProgress(const v1::RunProgress& progress) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (end_) return;
    next_ = progress;
    Proceed();
  }

  // The first status counts.
  void End(const Status& status) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!end_) end_ = status;
    Proceed();
  }

  void OnGone() EXCLUDES(mutex_) {
    std::optional<core::WatchId> watch;
    {
      MutexLock lock(mutex_);
      is_gone_ = true;
      next_.reset();
      watch = watch_;
    }
    if (watch) core_.StopWatching(*watch);
  }

  // At most one write in flight; Finish() once, after the last write.
  void Proceed() REQUIRES(mutex_) {
    if (is_writing_ || is_finished_) return;
    if (next_ && !(end_ && !end_->ok())) {
      current_ = std::move(*next_);
      next_.reset();
      is_writing_ = true;
      StartWrite(&current_);
    } else if (end_) {
      is_finished_ = true;
      Finish(grpc_edge::ToGrpc(*end_));
    }
  }

  core::Core& core_;
  // Set before gRPC sees the reactor, moved out in OnDone().
  std::shared_ptr<WatchReactor> self_;
  // Belongs to gRPC while is_writing_.
  v1::RunProgress current_;

  Mutex mutex_;
  // Guarded by mutex_.
  std::optional<v1::RunProgress> next_ GUARDED_BY(mutex_);
  std::optional<Status> end_ GUARDED_BY(mutex_);
  std::optional<core::WatchId> watch_ GUARDED_BY(mutex_);
  bool is_writing_ GUARDED_BY(mutex_) = false;
  bool is_finished_ GUARDED_BY(mutex_) = false;
  bool is_gone_ GUARDED_BY(mutex_) = false;
};

class ControlServiceImpl final : public v1::ControlService::CallbackService {
 public:
  explicit ControlServiceImpl(core::Core& core) : core_(core) {}

  ServerUnaryReactor* GetController(CallbackServerContext* context, const v1::GetControllerRequest*,
                                    v1::Controller* response) override {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    *response = core_.GetController();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  ServerUnaryReactor* SubmitSweep(CallbackServerContext* context,
                                  const v1::SubmitSweepRequest* request,
                                  v1::SubmitSweepResponse* response) override {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    core_.SubmitSweep(*request, ActorOf(*context), FinishWith(reactor, response));
    return reactor;
  }

  ServerUnaryReactor* PlanSweep(CallbackServerContext* context, const v1::PlanSweepRequest* request,
                                v1::Plan* response) override {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    core_.PlanSweep(*request, FinishWith(reactor, response));
    return reactor;
  }

  ServerUnaryReactor* ListRuns(CallbackServerContext* context, const v1::ListRunsRequest* request,
                               v1::ListRunsResponse* response) override {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    core_.ListRuns(*request, FinishWith(reactor, response));
    return reactor;
  }

  ServerUnaryReactor* GetRun(CallbackServerContext* context, const v1::GetRunRequest* request,
                             v1::Run* response) override {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    core_.GetRun(*request, FinishWith(reactor, response));
    return reactor;
  }

  ServerUnaryReactor* GetLog(CallbackServerContext* context, const v1::GetLogRequest* request,
                             v1::AttemptLog* response) override {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    core_.GetLog(*request, FinishWith(reactor, response));
    return reactor;
  }

  grpc::ServerWriteReactor<v1::RunProgress>* WatchRun(CallbackServerContext*,
                                                      const v1::GetRunRequest* request) override {
    return WatchReactor::Start(core_, *request);
  }

  ServerUnaryReactor* CancelRun(CallbackServerContext* context, const v1::CancelRunRequest* request,
                                v1::RunProgress* response) override {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    core_.CancelRun(*request, ActorOf(*context), FinishWith(reactor, response));
    return reactor;
  }

  ServerUnaryReactor* ListHosts(CallbackServerContext* context, const v1::ListHostsRequest*,
                                v1::ListHostsResponse* response) override {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    core_.ListHosts(FinishWith(reactor, response));
    return reactor;
  }

  ServerUnaryReactor* GetHost(CallbackServerContext* context, const v1::GetHostRequest* request,
                              v1::Host* response) override {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    core_.GetHost(*request, FinishWith(reactor, response));
    return reactor;
  }

  ServerUnaryReactor* Diff(CallbackServerContext* context, const v1::DiffRequest* request,
                           v1::DiffResponse* response) override {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    core_.Diff(*request, FinishWith(reactor, response));
    return reactor;
  }

 private:
  core::Core& core_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeControlService(core::Core& core) {
  return std::make_unique<ControlServiceImpl>(core);
}

}  // namespace pipeyard::api
