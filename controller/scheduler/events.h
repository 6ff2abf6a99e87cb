// What goes into the scheduler and what comes out.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "pipeyard/v1/agent.pb.h"
#include "pipeyard/v1/control.pb.h"
#include "storage/records.h"
#include "storage/store.h"

namespace pipeyard::scheduler {

// The time of an event. `monotonic` decides (deadlines, waits), `utc` is written down.
struct Now {
  MonotonicTime monotonic{0};
  UtcTime utc{0};
};

// --- events --------------------------------------------------------------------------------------

// A session was welcomed. `hello` has passed the session's checks. An earlier session of the same
// host is over with this.
struct HostAttached {
  std::string host_id;
  // Tells sessions of a host apart, in any way.
  uint64_t session = 0;
  v1::Hello hello;
};
// Ignored unless `session` is the host's newest.
struct HostDetached {
  std::string host_id;
  uint64_t session = 0;
};
struct AcceptReceived {
  std::string host_id;
  v1::Accepted accepted;
};
struct RefusalReceived {
  std::string host_id;
  v1::Refused refused;
};
struct HeartbeatReceived {
  std::string host_id;
  v1::Heartbeat heartbeat;
};
// `is_known` is absent when the frame comes from the agent, and says whether the store ever
// assigned the attempt when the same event comes back as the answer to a LookUp.
struct FrameReceived {
  std::string host_id;
  v1::Frame frame;
  std::optional<bool> is_known = std::nullopt;
};
// From BuildRun(), not yet stored. Precondition: its run_id and request_id are new.
struct RunSubmitted {
  storage::RunRecord run;
  std::string actor = "controller";  // for the audit, "cli:root@vera"
};
// Changes nothing where the run is not active.
struct CancelRequested {
  std::string run_id;
  std::string actor;  // for the audit, "cli:root@vera"
};
// Time has passed. Due at least each second while there are active runs.
struct Tick {};

using Event = std::variant<HostAttached, HostDetached, AcceptReceived, RefusalReceived,
                           HeartbeatReceived, FrameReceived, RunSubmitted, CancelRequested, Tick>;

// --- actions -------------------------------------------------------------------------------------

// To the host's newest session; dropped where it has none (a new Hello makes good for it).
struct Send {
  std::string host_id;
  v1::ControllerMessage message;
};

// Once the mutations so far are durable, ask the store whether it knows the attempt, and give the
// frame back with the answer. Lookups are answered in their order.
struct LookUp {
  FrameReceived frame;
};

// End the host's session as a protocol error: what it sent leaves a gap to what is stored. It will
// attach again and resend.
struct CloseSession {
  std::string host_id;
  std::string why;
};

struct Actions {
  // One transaction. Those of an earlier event are applied before those of a later one.
  std::vector<storage::Mutation> mutations;
  // In this order, and only once `mutations` and those of all earlier events are durable.
  std::vector<Send> sends;
  std::vector<LookUp> lookups;
  // At once.
  std::vector<CloseSession> closes;
  // Runs whose progress changed. What is shown of them waits for the same commit.
  std::vector<std::string> changed_runs;
  // The last progress, with exit status, of each run that ended. Shown after the commit, as well.
  std::vector<v1::RunProgress> ended;
  // What is worth a line in the log: "host vera: frame of another store ignored".
  std::vector<std::string> notes;

  bool empty() const {
    return mutations.empty() && sends.empty() && lookups.empty() && closes.empty() &&
           changed_runs.empty();
  }
};

}  // namespace pipeyard::scheduler
