// ControlService over gRPC's callback API: each call becomes one call of core::Core, each reply a
// Finish(). Nothing is decided here and nothing blocks.
//
// Unary calls: the default reactor of the context; Finish() once, when the core replies.
// WatchRun (server streaming):
//
//   WatchRun() ──> watching ─ progress: written at once, or kept until OnWriteDone(), a newer one
//        │            │       taking the place of an older one
//        │            ├ end of the run: the last progress is written, then Finish(OK)
//        │            ├ OnCancel, OnWriteDone(not ok): the watch is removed, Finish(CANCELLED)
//        ▼            ▼
//   refused ──────> finishing ─ OnDone: the reactor deletes itself
//
// Thread safety: Thread-safe. Ownership: the core outlives the gRPC server that this is given to.
#pragma once

#include <memory>

#include "controller/core/core.h"

namespace grpc {
class Service;
}

namespace pipeyard::api {

// `core` is borrowed.
std::unique_ptr<grpc::Service> MakeControlService(core::Core& core);

}  // namespace pipeyard::api
