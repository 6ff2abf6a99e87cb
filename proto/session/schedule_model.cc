#include "proto/session/schedule_model.h"

#include <fmt/format.h>

#include "proto/session/messages.h"

namespace pipeyard::session {

// --- agent ---------------------------------------------------------------------------------------

ModelAgent::ModelAgent(World& world, Spool& spool) : world_(world), spool_(spool) {
  // What a process finds unfinished at its start ends here, through the spool.
  for (Spool::Attempt& attempt : spool_.attempts) {
    if (!attempt.is_ended) AppendFrame(attempt, true);
  }
  v1::Hello hello;
  hello.set_agent_id(spool.agent_id);
  hello.set_name(spool.name);
  hello.set_boot_id(spool.boot_id);
  hello.set_instance_id(world.ids.Next());
  hello.set_agent_version("model");
  AgentSessionOptions options;
  options.seed = world.random();
  session_.emplace(world.executor, world.clock, world.network, *this, *this, hello, options);
  session_->Start();
}

std::vector<AttemptSource::Held> ModelAgent::HeldAttempts() {
  std::vector<Held> all;
  for (const Spool::Attempt& attempt : spool_.attempts) {
    Held held;
    held.attempt.set_attempt_id(attempt.attempt_id);
    held.attempt.set_store_id(attempt.store_id);
    held.attempt.set_phase(attempt.is_ended ? v1::ATTEMPT_PHASE_SPOOLED
                                            : v1::ATTEMPT_PHASE_RUNNING);
    held.attempt.set_spooled_through(attempt.frames.size());
    held.acked_through = attempt.acked_through;
    all.push_back(held);
  }
  return all;
}

Result<v1::Frame> ModelAgent::ReadFrame(const std::string& attempt_id, uint64_t sequence) {
  const Spool::Attempt* const attempt = Find(attempt_id);
  if (attempt == nullptr || sequence < 1 || sequence > attempt->frames.size()) {
    return NotFound("no such frame");
  }
  return attempt->frames[sequence - 1];
}

void ModelAgent::OnAssign(const v1::Assign& assign) {
  if (Find(assign.attempt_id()) != nullptr || spool_.ended.contains(assign.attempt_id())) {
    EXPECT_TRUE(Find(assign.attempt_id()) != nullptr || !world_.keeps_order)
        << "an attempt was assigned again after it was acknowledged";
    session_->Accept(assign.attempt_id());
    return;
  }
  for (const Spool::Attempt& attempt : spool_.attempts) {
    if (attempt.is_ended) continue;
    session_->Refuse(assign.attempt_id(), v1::Refused::REASON_BUSY, "runs another attempt");
    return;
  }
  spool_.attempts.push_back({assign.attempt_id(), assign.store_id(), {}, 0, false});
  session_->Accept(assign.attempt_id());
  RunOn(assign.attempt_id(), 1 + world_.Below(7));
}

void ModelAgent::RunOn(const std::string& attempt_id, int frames_left) {
  world_.executor.PostAfter(world_.UpTo(Seconds(2)),
                            [this, alive = is_alive_, attempt_id, frames_left] {
                              if (!*alive) return;
                              Spool::Attempt* const attempt = Find(attempt_id);
                              ASSERT_NE(attempt, nullptr);
                              AppendFrame(*attempt, frames_left == 1);
                              session_->FramesSpooled();
                              if (frames_left > 1) RunOn(attempt_id, frames_left - 1);
                            });
}

void ModelAgent::AppendFrame(Spool::Attempt& attempt, bool is_final) {
  v1::Frame frame;
  frame.set_store_id(attempt.store_id);
  frame.set_attempt_id(attempt.attempt_id);
  frame.set_sequence(attempt.frames.size() + 1);
  frame.add_outputs()->set_stream("stdout");
  // Unlike every other frame that was ever made: a second version of it would be noticed.
  frame.mutable_outputs(0)->set_data(world_.ids.Next());
  if (is_final) {
    frame.set_is_final(true);
    frame.mutable_end()->set_outcome(v1::OUTCOME_OK);
    frame.mutable_end()->set_boot_id(spool_.boot_id);
    attempt.is_ended = true;
    spool_.ended.insert(attempt.attempt_id);
  }
  attempt.frames.push_back(frame);
}

void ModelAgent::OnAcked(const std::string& attempt_id, uint64_t through) {
  Spool::Attempt* const attempt = Find(attempt_id);
  ASSERT_NE(attempt, nullptr);
  EXPECT_GT(through, attempt->acked_through);
  EXPECT_LE(through, attempt->frames.size());
  EXPECT_LE(through, world_.CommittedThrough(attempt_id)) << "acknowledged before the commit";
  attempt->acked_through = through;
  if (attempt->is_ended && through == attempt->frames.size()) {
    std::erase_if(spool_.attempts, [&](const auto& a) { return a.attempt_id == attempt_id; });
  }
}

Spool::Attempt* ModelAgent::Find(const std::string& attempt_id) {
  for (Spool::Attempt& attempt : spool_.attempts) {
    if (attempt.attempt_id == attempt_id) return &attempt;
  }
  return nullptr;
}

// --- controller ----------------------------------------------------------------------------------

ModelController::ModelController(World& world, Store& store) : world_(world), store_(store) {
  RegistryOptions options;
  options.store_id = store.store_id;
  options.epoch = store.epoch;
  options.session.max_unacked_frames = kCredits;
  registry_.emplace(world.executor, world.clock, *this, *this, options);
}

void ModelController::OnAgentAttached(const std::string& agent_id, const v1::Hello& hello) {
  std::set<std::string> held;
  for (const v1::HeldAttempt& attempt : hello.held()) held.insert(attempt.attempt_id());
  for (const Store::Trial& trial : store_.trials) {
    if (trial.agent_id != agent_id || trial.leased_attempt.empty()) continue;
    if (!held.contains(trial.leased_attempt)) SendAssign(agent_id, trial.leased_attempt);
  }
  LeaseNext(agent_id);
}

void ModelController::OnAgentDetached(const std::string&, const Status& why) {
  // Only a network that doubles or reorders makes a peer break the protocol.
  if (world_.keeps_order) {
    EXPECT_NE(why.code(), StatusCode::kInvalidArgument) << why.ToString();
  }
}

void ModelController::OnRefused(const std::string& agent_id, const v1::Refused& refused) {
  for (Store::Trial& trial : store_.trials) {
    if (trial.leased_attempt != refused.attempt_id()) continue;
    trial.leased_attempt.clear();
    world_.executor.PostAfter(Seconds(1), [this, alive = is_alive_, agent_id] {
      if (*alive) LeaseNext(agent_id);
    });
  }
}

void ModelController::OnFrame(const std::string& agent_id, const v1::Frame& frame) {
  pending_.emplace_back(agent_id, frame);
  if (commit_is_due_) return;
  commit_is_due_ = true;
  world_.executor.PostAfter(world_.UpTo(Milliseconds(300)), [this, alive = is_alive_] {
    if (*alive) Commit();
  });
}

void ModelController::Commit() {
  commit_is_due_ = false;
  std::vector<std::pair<std::string, v1::Frame>> batch;
  batch.swap(pending_);
  std::set<std::pair<std::string, std::string>> acks;
  for (const auto& [agent_id, frame] : batch) {
    CommitFrame(frame);
    acks.emplace(agent_id, frame.attempt_id());
  }
  for (const auto& [agent_id, attempt_id] : acks) {
    const uint64_t through = world_.CommittedThrough(attempt_id);
    if (through > 0) registry_->SendAck(agent_id, attempt_id, through);
    LeaseNext(agent_id);
  }
}

void ModelController::CommitFrame(const v1::Frame& frame) {
  EXPECT_TRUE(store_.known_attempts.contains(frame.attempt_id()));
  const std::string bytes = frame.SerializeAsString();
  const auto [it, is_new] = store_.frames[frame.attempt_id()].emplace(frame.sequence(), bytes);
  EXPECT_EQ(it->second, bytes) << "a frame came again with other content";
  if (!is_new || !frame.is_final()) return;
  for (Store::Trial& trial : store_.trials) {
    if (trial.leased_attempt != frame.attempt_id()) continue;
    trial.leased_attempt.clear();
    trial.is_done = true;
    ++store_.num_finals;
  }
}

void ModelController::LeaseNext(const std::string& agent_id) {
  if (!registry_->IsAttached(agent_id)) return;
  for (const Store::Trial& trial : store_.trials) {
    if (trial.agent_id == agent_id && !trial.leased_attempt.empty()) return;
  }
  for (Store::Trial& trial : store_.trials) {
    if (trial.agent_id != agent_id || trial.is_done) continue;
    trial.leased_attempt = world_.ids.Next();
    store_.known_attempts.insert(trial.leased_attempt);
    SendAssign(agent_id, trial.leased_attempt);
    return;
  }
}

void ModelController::SendAssign(const std::string& agent_id, const std::string& attempt_id) {
  v1::Assign assign;
  assign.set_attempt_id(attempt_id);
  assign.set_run_id(store_.store_id);
  assign.set_trial_timeout_ns(1);
  assign.mutable_variant()->set_workload("transfer");
  assign.mutable_variant()->set_target("kernel");
  assign.mutable_variant()->set_variant_id("0123456789abcdef");
  registry_->SendAssign(agent_id, assign);
}

// --- world ---------------------------------------------------------------------------------------

World::World(uint64_t seed, const NetworkFaults& given_faults, bool order)
    : random(seed),
      ids(clock, seed),
      network(executor, clock, seed + 1),
      faults(given_faults),
      keeps_order(order) {
  store.store_id = ids.Next();
  store.epoch = 1;
  spools.resize(kNumAgents);
  for (int i = 0; i < kNumAgents; ++i) {
    spools[i].agent_id = ids.Next();
    spools[i].name = fmt::format("host-{}", i);
    spools[i].boot_id = ids.Next();
    for (int t = 0; t < kTrialsPerAgent; ++t) {
      store.trials.push_back({spools[i].agent_id, "", false});
    }
  }
  network.SetFaults(faults);
  controller = std::make_unique<ModelController>(*this, store);
  network.Listen(&controller->registry());
  network.on_controller_message = [this](const v1::ControllerMessage& message) {
    EXPECT_EQ(ValidateControllerMessage(message), Status::Ok());
    if (!message.has_ack()) return;
    EXPECT_LE(message.ack().through(), CommittedThrough(message.ack().attempt_id()))
        << "an acknowledgement ran ahead of the commits";
  };
  network.on_agent_message = [](const v1::AgentMessage& message) {
    EXPECT_EQ(ValidateAgentMessage(message), Status::Ok());
  };
  for (int i = 0; i < kNumAgents; ++i) {
    agents.push_back(std::make_unique<ModelAgent>(*this, spools[i]));
  }
}

void World::Run() {
  for (int step = 0; step < 60 && !::testing::Test::HasFailure(); ++step) {
    switch (Below(16)) {
      case 0:
        RestartAgent(Below(kNumAgents));
        break;
      case 1:
        RestartController(UpTo(Seconds(5)));
        break;
      case 2:
        network.BreakLinks();
        break;
      case 3:
        network.Blackhole();
        break;
      default:
        break;
    }
    executor.Advance(UpTo(Seconds(2)));
  }

  NetworkFaults healed;
  healed.max_delay = faults.max_delay;
  network.SetFaults(healed);
  // A blackholed link is noticed by the heartbeat's deadline on the controller's side only, where
  // gRPC's keepalive is absent.
  network.BreakLinks();
  for (int i = 0; i < 600 && !IsDone(); ++i) executor.Advance(Seconds(1));

  EXPECT_TRUE(IsDone()) << "not everything was done after the links had healed";
  EXPECT_EQ(store.num_finals, kNumAgents * kTrialsPerAgent);
}

bool World::IsDone() const {
  for (const Store::Trial& trial : store.trials) {
    if (!trial.is_done) return false;
  }
  for (const Spool& spool : spools) {
    if (!spool.attempts.empty()) return false;
  }
  return true;
}

uint64_t World::CommittedThrough(const std::string& attempt_id) const {
  const auto it = store.frames.find(attempt_id);
  if (it == store.frames.end()) return 0;
  uint64_t through = 0;
  while (it->second.contains(through + 1)) ++through;
  return through;
}

}  // namespace pipeyard::session
