// Scheduler: decides which trial runs where and what becomes of it. A state machine: an event and
// the time go in, actions come out. It knows no clock, thread, file or socket, so equal events give
// equal actions; after a crash it is rebuilt from Store::LoadActiveRuns() and the agents' Hellos.
//
// Rules (docs/STATES.md has the states):
// - A host runs one trial at a time: of the oldest active run that has one pending there, the trial
// of
//   the smallest (block, last ended attempt, position). A retry thus goes to the end of its block.
// - An attempt is inserted before it is assigned, and a frame stored before it is acknowledged:
//   Actions::sends wait for the mutations. Frames that are stored already are acknowledged again,
//   behind whatever is still being committed. A frame past a gap is neither stored nor
//   acknowledged.
// - The first ok is the trial's sample; a later attempt of it is then canceled. An attempt that was
//   lost and comes back ok before another did is that sample. An attempt's end is judged once.
// - Assign is repeated after each Hello and in Heartbeats that do not list the attempt, under the
//   present epoch; Accepted and Refused of another epoch are ignored.
// - `lost` is said only when nothing was heard of the attempt for host_wait. A host that is away or
//   refuses everything for host_wait has its trials of the run failed, so every run ends.
// - An attempt that runs past trial_timeout plus a grace is canceled and ended `timeout` here.
//
// Not here: until, pause, priorities, drain, joining hosts.
//
// Thread safety: confined to the controller's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "controller/scheduler/events.h"
#include "controller/scheduler/outcome.h"
#include "controller/scheduler/state.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::scheduler {

struct Options {
  // 10 s: two heartbeats' worth of late news past the agent's own deadline, so that the agent,
  // which knows better, ends the attempt first.
  Nanos deadline_grace = Seconds(10);
  // 15 s: longer than a heartbeat interval, so that a heartbeat already under way when the Assign
  // was sent repeats nothing.
  Nanos assign_repeat = Seconds(15);
  // How long an accepted attempt may wait for other agents of its machine before it ends `timeout`.
  Nanos max_waiting = Minutes(60);
  // Pause of a host after a refusal; doubles up to the second with each in a row.
  Nanos first_pause = Seconds(1);
  Nanos longest_pause = Minutes(1);
  // How often, at most, a connected host's last_seen is written.
  Nanos touch_interval = Minutes(1);
};

class Scheduler {
 public:
  // `next_id` gives UUIDv7s that ascend. `identity` is the store's.
  Scheduler(storage::StoreIdentity identity, std::function<std::string()> next_id,
            Options options = {});
  ~Scheduler();

  // Takes over the runs of Store::LoadActiveRuns(). Once, before any event. Every host then has
  // host_wait from `now`, and at least a minute, to attach. The actions finish what a crash left
  // undone.
  Actions Recover(std::vector<storage::RunRecord> runs, Now now);

  Actions Handle(const Event& event, Now now);

  bool IsActive(const std::string& run_id) const { return runs_.contains(run_id); }
  // The run that a request made since this start or that is still active.
  std::optional<std::string> FindRequest(const std::string& request_id) const;
  // Progress of an active run; nullopt where it is none. May run ahead of the commits.
  std::optional<v1::RunProgress> Progress(const std::string& run_id) const;
  // Trial that runs on the host, "HOST/VARIANT/INDEX"; empty where none does.
  std::string RunningOn(const std::string& host_id) const;
  bool IsConnected(const std::string& host_id) const;
  size_t num_active_runs() const { return runs_.size(); }
  size_t num_connected_hosts() const;

 private:
  // Where an attempt belongs.
  struct Place {
    Run* run = nullptr;
    Cell* cell = nullptr;
    Trial* trial = nullptr;
  };

  void On(const HostAttached& event);
  void On(const HostDetached& event);
  void On(const AcceptReceived& event);
  void On(const RefusalReceived& event);
  void On(const HeartbeatReceived& event);
  void On(const FrameReceived& event);
  void On(const RunSubmitted& event);
  void On(const CancelRequested& event);
  void On(const Tick& event);

  // frames.cc
  void StoreFrame(HostState& host, Attempt& attempt, const v1::Frame& frame);
  void OnGap(HostState& host, Attempt& attempt, const v1::Frame& frame);
  void OnUnknownFrame(const FrameReceived& event);
  void EndByAgent(Attempt& attempt, const v1::Frame& final_frame);
  void Acknowledge(const std::string& host_id, const std::string& attempt_id, uint64_t through);

  // dispatch.cc
  void Dispatch(HostState& host);
  bool IsFree(const HostState& host) const;
  void Lease(HostState& host, Run& run, const PendingKey& key);
  void SendAssign(Attempt& attempt);
  void SendCancel(const Attempt& attempt, std::string_view reason);
  void Report(HostState& host, const google::protobuf::RepeatedPtrField<v1::HeldAttempt>& held,
              bool is_hello);
  void MarkAccepted(Attempt& attempt);
  void CheckDeadlines(HostState& host);

  // ending.cc
  void EndAttempt(Attempt& attempt, const Judgement& judgement);
  void ApplyOutcome(Attempt& attempt, const Judgement& judgement);
  void MoveTrial(Run& run, Cell& cell, Trial& trial, TrialTrigger trigger);
  void CancelOthers(const Attempt& kept);
  void EndCellNotApplicable(Run& run, Cell& cell, const std::string& reason);
  void GiveUpHost(Run& run, const std::string& host_id, std::string_view code,
                  const std::string& text);
  void SettleCell(Run& run, Cell& cell);
  void SettleRun(Run& run);
  void MoveRun(Run& run, RunTrigger trigger, const std::string& reason);
  void ForgetEndedRuns();

  // recover.cc
  void Adopt(storage::RunRecord record);
  void AdoptAttempts(Run& run, Cell& cell, Trial& trial,
                     const std::vector<storage::AttemptRecord>& records);

  // progress.cc
  std::string WhatRuns(const Run& run, const std::string& host_id, const RunHost& part) const;

  Place Find(const Attempt& attempt);
  Attempt* FindAttempt(const std::string& host_id, const std::string& attempt_id,
                       const char* message);
  HostState& Host(const std::string& host_id);
  void Change(Run& run);
  void Note(std::string text) { actions_.notes.push_back(std::move(text)); }

  // Constant after construction.
  const storage::StoreIdentity identity_;
  const std::function<std::string()> next_id_;
  const Options options_;

  // By run id, which is by age.
  std::map<std::string, std::unique_ptr<Run>> runs_;
  std::map<std::string, HostState> hosts_;
  // Every attempt of every active run.
  std::unordered_map<std::string, Attempt> attempts_;
  std::unordered_map<std::string, std::string> requests_;  // request id -> run id

  // Of the event being handled.
  Now now_;
  Actions actions_;
  std::vector<std::string> ended_runs_;
};

}  // namespace pipeyard::scheduler
