// Random histories of a controller and its agents: commits that lag, controllers that die with
// commits under way, links that break and lose what is on them, repeated messages, agents that
// restart, leave, refuse, hang. After every event the invariants are checked; in the end every run
// has ended. One seed gives one history; PIPEYARD_SEED runs that seed alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <set>

#include "base/ids.h"
#include "controller/scheduler/scheduler.h"
#include "controller/scheduler/testing/builders.h"
#include "controller/scheduler/testing/model_store.h"

namespace pipeyard::scheduler {
namespace {

// An agent with a spool that survives it.
struct ModelAgent {
  struct Job {
    v1::AttemptPhase phase = v1::ATTEMPT_PHASE_RUNNING;
    MonotonicTime started{0};
    std::vector<v1::Frame> frames;
    uint64_t acked = 0;
    uint64_t sent = 0;  // on this link
  };

  uint32_t n = 0;
  bool is_linked = false;
  bool is_gone = false;
  uint64_t session = 0;
  uint64_t newest_epoch = 0;
  std::map<std::string, Job> jobs;
  std::set<std::string> finished;  // acknowledged to the end: forgotten on the agent
  std::deque<Event> up;
  std::deque<v1::ControllerMessage> down;

  bool IsRunning() const {
    return std::ranges::any_of(
        jobs, [](const auto& entry) { return entry.second.phase != v1::ATTEMPT_PHASE_SPOOLED; });
  }
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed), ids_(clock_, seed) {
    StartController();
    for (uint32_t n = 1; n <= kAgents; ++n) agents_[n].n = n;
  }

  void Run() {
    for (int i = 0; i < kEvents && !::testing::Test::HasFatalFailure(); ++i) {
      Step();
      CheckInvariants();
    }
    Settle();
    CheckEnd();
  }

 private:
  static constexpr uint32_t kAgents = 3;
  static constexpr int kEvents = 1500;

  bool Chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  Now now() const { return {clock_.Now(), clock_.UtcNow()}; }
  static std::string HostId(uint32_t n) { return TestHost(n).record.host_id; }

  void Step() {
    ModelAgent& agent = agents_[1 + Below(kAgents)];
    switch (Below(20)) {
      case 0:
        if (num_runs_ < 6) Submit();
        break;
      case 1:
        if (Chance(0.1)) CancelSomeRun();
        break;
      case 2:
        if (Chance(0.15)) CrashController();
        break;
      case 3:
        if (Chance(0.2)) BreakLink(agent);
        break;
      case 4:
        if (Chance(0.15)) RestartAgent(agent);
        break;
      case 5:
        if (Chance(0.01)) agent.is_gone = true, BreakLink(agent);
        break;
      case 6:
        clock_.Advance(Chance(0.02) ? Minutes(11) : Seconds(1 + Below(20)));
        Handle(Tick{});
        break;
      case 7:
        Link(agent);
        break;
      case 8:
      case 9:
        FinishJob(agent);
        break;
      case 10:
        if (agent.is_linked) agent.up.push_back(Heartbeat(agent));
        break;
      case 11:
      case 12:
      case 13:
        Commit();
        break;
      case 14:
      case 15:
      case 16:
        DeliverUp(agent);
        break;
      default:
        DeliverDown(agent);
    }
  }

  // --- the controller ----------------------------------------------------------------------------

  void StartController() {
    scheduler_ = std::make_unique<Scheduler>(store_.identity(), [this] { return ids_.Next(); });
    Queue(scheduler_->Recover(store_.LoadActiveRuns().value(), now()));
  }

  void Handle(const Event& event) { Queue(scheduler_->Handle(event, now())); }

  void Queue(Actions actions) {
    std::vector<CloseSession> closes = std::exchange(actions.closes, {});
    commits_.push_back(std::move(actions));
    for (const CloseSession& close : closes) {
      for (auto& [n, agent] : agents_) {
        if (HostId(n) == close.host_id) BreakLink(agent);
      }
    }
  }

  void Commit() {
    if (commits_.empty()) return;
    const Actions actions = std::move(commits_.front());
    commits_.pop_front();
    const Status applied = store_.Apply(actions.mutations);
    ASSERT_TRUE(applied.ok()) << applied.ToString();
    for (const storage::Mutation& mutation : actions.mutations) {
      if (const auto* insert = std::get_if<storage::InsertAttempt>(&mutation)) {
        was_stored_.insert(insert->attempt.attempt_id);
      }
    }
    for (const LookUp& lookup : actions.lookups) {
      FrameReceived answer = lookup.frame;
      answer.is_known = store_.KnowsAttempt(answer.frame.attempt_id()).value();
      Handle(answer);
    }
    for (const Send& send : actions.sends) {
      for (auto& [n, agent] : agents_) {
        if (HostId(n) == send.host_id && agent.is_linked) agent.down.push_back(send.message);
      }
    }
  }

  void CrashController() {
    // What was applied is durable; what waited is gone, and nothing of it was sent.
    commits_.clear();
    for (auto& [n, agent] : agents_) {
      agent.is_linked = false;
      agent.up.clear();
      agent.down.clear();
    }
    store_.Reopen();
    StartController();
  }

  void Submit() {
    spec::Sweep sweep = TestSweep(1 + Below(3), 1 + Below(4));
    sweep.attempts_limit = 1 + Below(3);
    sweep.stops_host_on_crash = Chance(0.5);
    sweep.host_wait = Chance(0.1) ? Nanos(0) : Minutes(10);
    std::vector<HostView> hosts;
    for (uint32_t n = 1; n <= kAgents; ++n) hosts.push_back(TestHost(n));
    RunRequest request = TestRequest(++num_runs_);
    request.run_id = ids_.Next();
    Result<BuiltRun> built = BuildRun(sweep, hosts, request);
    ASSERT_TRUE(built.ok());
    Handle(RunSubmitted{built->run, "cli:sim"});
  }

  void CancelSomeRun() {
    if (store_.runs().empty()) return;
    auto it = store_.runs().begin();
    std::advance(it, Below(static_cast<uint32_t>(store_.runs().size())));
    Handle(CancelRequested{it->first, "cli:sim"});
  }

  // --- links -------------------------------------------------------------------------------------

  void Link(ModelAgent& agent) {
    if (agent.is_linked || agent.is_gone) return;
    agent.is_linked = true;
    agent.session = next_session_++;
    agent.newest_epoch = store_.identity().epoch;
    v1::Hello hello = HelloOf(TestHost(agent.n));
    *hello.mutable_held() = HeldBy(agent);
    agent.up.push_back(HostAttached{HostId(agent.n), agent.session, hello});
    for (auto& [id, job] : agent.jobs) job.sent = job.acked;
    SendFrames(agent);
  }

  // Both directions lose what is under way.
  void BreakLink(ModelAgent& agent) {
    if (!agent.is_linked) return;
    agent.is_linked = false;
    agent.up.clear();
    agent.down.clear();
    Handle(HostDetached{HostId(agent.n), agent.session});
  }

  void DeliverUp(ModelAgent& agent) {
    if (agent.up.empty()) return;
    const Event event = agent.up.front();
    agent.up.pop_front();
    Handle(event);
    if (Chance(0.1) && agent.is_linked && !std::holds_alternative<HostAttached>(event)) {
      Handle(event);
    }
  }

  void DeliverDown(ModelAgent& agent) {
    if (agent.down.empty()) return;
    const v1::ControllerMessage message = agent.down.front();
    agent.down.pop_front();
    if (message.has_assign()) OnAssign(agent, message.assign());
    if (message.has_cancel())
      EndJob(agent, message.cancel().attempt_id(), v1::OUTCOME_CANCELED, "");
    if (message.has_ack()) OnAck(agent, message.ack());
  }

  // --- the agent ---------------------------------------------------------------------------------

  google::protobuf::RepeatedPtrField<v1::HeldAttempt> HeldBy(const ModelAgent& agent) const {
    google::protobuf::RepeatedPtrField<v1::HeldAttempt> held;
    for (const auto& [id, job] : agent.jobs) {
      v1::HeldAttempt& item = *held.Add();
      item.set_attempt_id(id);
      item.set_store_id(store_.identity().store_id);
      item.set_phase(job.phase);
      item.set_running_ns((clock_.Now() - job.started).count());
      item.set_spooled_through(job.frames.size());
    }
    return held;
  }

  Event Heartbeat(const ModelAgent& agent) const {
    HeartbeatReceived event{HostId(agent.n), {}};
    *event.heartbeat.mutable_held() = HeldBy(agent);
    return event;
  }

  void OnAssign(ModelAgent& agent, const v1::Assign& assign) {
    // Not `is`: an Assign that was repeated may come after the refusal of the first.
    EXPECT_TRUE(was_stored_.contains(assign.attempt_id())) << "assigned before the commit";
    if (assign.epoch() < agent.newest_epoch) return;
    if (!agent.jobs.contains(assign.attempt_id())) {
      EXPECT_FALSE(agent.finished.contains(assign.attempt_id())) << "would run a second time";
      v1::Refused::Reason reason = v1::Refused::REASON_UNSPECIFIED;
      if (agent.IsRunning())
        reason = v1::Refused::REASON_BUSY;
      else if (Chance(0.05))
        reason = v1::Refused::REASON_DISK;
      else if (Chance(0.02))
        reason = v1::Refused::REASON_NOT_APPLICABLE;
      if (reason != v1::Refused::REASON_UNSPECIFIED) {
        RefusalReceived event{HostId(agent.n), {}};
        event.refused.set_attempt_id(assign.attempt_id());
        event.refused.set_epoch(assign.epoch());
        event.refused.set_reason(reason);
        agent.up.push_back(event);
        return;
      }
      agent.jobs[assign.attempt_id()].started = clock_.Now();
    }
    AcceptReceived event{HostId(agent.n), {}};
    event.accepted.set_attempt_id(assign.attempt_id());
    event.accepted.set_epoch(assign.epoch());
    agent.up.push_back(event);
  }

  void FinishJob(ModelAgent& agent) {
    for (const auto& [id, job] : agent.jobs) {
      if (job.phase == v1::ATTEMPT_PHASE_SPOOLED) continue;
      static constexpr v1::Outcome kOutcomes[] = {v1::OUTCOME_VOID, v1::OUTCOME_FAILED,
                                                  v1::OUTCOME_TIMEOUT};
      const v1::Outcome outcome = Chance(0.7) ? v1::OUTCOME_OK : kOutcomes[Below(3)];
      const bool is_crash = outcome == v1::OUTCOME_FAILED && Chance(0.1);
      EndJob(agent, std::string(id), outcome, is_crash ? "host_crashed" : "");
      return;
    }
  }

  void RestartAgent(ModelAgent& agent) {
    BreakLink(agent);
    for (auto& [id, job] : agent.jobs) {
      if (job.phase != v1::ATTEMPT_PHASE_SPOOLED) {
        EndJob(agent, std::string(id), v1::OUTCOME_VOID, "agent_restarted");
      }
    }
  }

  void EndJob(ModelAgent& agent, const std::string& id, v1::Outcome outcome,
              const std::string& reason) {
    const auto it = agent.jobs.find(id);
    if (it == agent.jobs.end() || it->second.phase == v1::ATTEMPT_PHASE_SPOOLED) return;
    ModelAgent::Job& job = it->second;
    job.phase = v1::ATTEMPT_PHASE_SPOOLED;
    const uint32_t num_frames = 1 + Below(3);
    for (uint32_t i = 1; i <= num_frames; ++i) {
      v1::Frame frame = FinalFrame(store_.identity().store_id, id, outcome, reason);
      frame.set_sequence(i);
      frame.set_is_final(i == num_frames);
      if (i != num_frames) frame.clear_end();
      if (i != 1) frame.clear_metrics();
      job.frames.push_back(std::move(frame));
    }
    SendFrames(agent);
  }

  void SendFrames(ModelAgent& agent) {
    if (!agent.is_linked) return;
    for (auto& [id, job] : agent.jobs) {
      for (; job.sent < job.frames.size(); ++job.sent) {
        agent.up.push_back(FrameReceived{HostId(agent.n), job.frames[job.sent]});
      }
    }
  }

  void OnAck(ModelAgent& agent, const v1::Ack& ack) {
    const auto& stored = store_.FramesOf(ack.attempt_id());
    for (uint64_t sequence = 1; sequence <= ack.through(); ++sequence) {
      EXPECT_TRUE(stored.contains(sequence))
          << "frame " << sequence << " of " << ack.attempt_id() << " acknowledged, not stored";
    }
    const auto it = agent.jobs.find(ack.attempt_id());
    if (it == agent.jobs.end()) return;
    it->second.acked = std::max(it->second.acked, ack.through());
    if (it->second.acked == it->second.frames.size()) {
      agent.finished.insert(ack.attempt_id());
      agent.jobs.erase(it);
    }
  }

  // --- invariants --------------------------------------------------------------------------------

  void CheckInvariants() const {
    std::map<std::string, int> leased;
    for (const auto& [run_id, run] : store_.runs()) {
      for (const storage::CellRecord& cell : run.cells) {
        for (size_t i = 0; i < cell.trials.size(); ++i) {
          const storage::TrialState state = cell.trials[i].state;
          const auto count = [&](auto&& test) {
            return std::ranges::count_if(cell.attempts[i], test);
          };
          const auto num_open =
              count([](const storage::AttemptRecord& a) { return !a.outcome.has_value(); });
          const auto num_ok = count(
              [](const storage::AttemptRecord& a) { return a.outcome == storage::Outcome::kOk; });
          const bool is_leased =
              state == storage::TrialState::kLeased || state == storage::TrialState::kRunning;
          if (is_leased) ++leased[cell.host_id];
          ASSERT_EQ(num_open, is_leased ? 1 : 0) << run_id << " " << storage::Name(state);
          ASSERT_EQ(num_ok, state == storage::TrialState::kDone ? 1 : 0) << run_id;
          ASSERT_LE(cell.attempts[i].size(), run.attempts_limit);
        }
      }
    }
    for (const auto& [host_id, n] : leased) ASSERT_LE(n, 1) << host_id << " leased twice";
  }

  // Agents that are left come back and work on; everything must end.
  void Settle() {
    for (int i = 0; i < 4000 && !::testing::Test::HasFatalFailure(); ++i) {
      while (!commits_.empty()) Commit();
      if (scheduler_->num_active_runs() == 0 && i > 50) break;
      for (auto& [n, agent] : agents_) {
        Link(agent);
        while (!agent.up.empty()) DeliverUp(agent);
        while (!commits_.empty()) Commit();
        while (!agent.down.empty()) DeliverDown(agent);
        FinishJob(agent);
        if (agent.is_linked) agent.up.push_back(Heartbeat(agent));
      }
      clock_.Advance(Seconds(10));
      Handle(Tick{});
    }
  }

  void CheckEnd() const {
    ASSERT_EQ(scheduler_->num_active_runs(), 0u);
    for (const auto& [run_id, run] : store_.runs()) {
      ASSERT_TRUE(IsTerminal(run.state)) << run_id;
      for (const storage::CellRecord& cell : run.cells) {
        ASSERT_TRUE(IsTerminal(cell.state)) << run_id;
        for (const auto& trial : cell.trials) ASSERT_TRUE(IsTerminal(trial.state)) << run_id;
        if (cell.state == storage::CellState::kMissing) {
          ASSERT_FALSE(cell.reason.empty()) << run_id;
        }
      }
    }
    for (const auto& [n, agent] : agents_) {
      if (agent.is_gone) continue;
      ASSERT_TRUE(agent.jobs.empty()) << "the spool of agent " << n << " is jammed";
    }
  }

  FakeClock clock_;
  std::mt19937_64 random_;
  IdSource ids_;
  ModelStore store_{TestUuid(1)};
  std::unique_ptr<Scheduler> scheduler_;
  std::set<std::string> was_stored_;
  std::deque<Actions> commits_;
  std::map<uint32_t, ModelAgent> agents_;
  uint64_t next_session_ = 1;
  uint32_t num_runs_ = 0;
};

TEST(Simulation, KeepsItsInvariantsAndEndsEveryRun) {
  uint64_t first = 1, last = 300;
  if (const char* seed = std::getenv("PIPEYARD_SEED"))
    first = last = std::strtoull(seed, nullptr, 10);
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(fmt::format("PIPEYARD_SEED={}", seed));
    World world(seed);
    world.Run();
    if (::testing::Test::HasFailure()) {
      fmt::print("failed with PIPEYARD_SEED={}\n", seed);
      return;
    }
  }
}

}  // namespace
}  // namespace pipeyard::scheduler
