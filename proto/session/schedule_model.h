// Model agents and a model controller around the real sessions, over the fake network: the world of
// schedule_test.cc. The models are as plain as can be, and check the protocol's promises after
// every commit and every acknowledgement.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "base/ids.h"
#include "proto/session/agent_session.h"
#include "proto/session/fake_transport.h"
#include "proto/session/session_registry.h"

namespace pipeyard::session {

inline constexpr uint32_t kCredits = 3;
inline constexpr int kNumAgents = 3;
inline constexpr int kTrialsPerAgent = 6;

class World;

// What an agent keeps on its disk: survives a restart of its process.
struct Spool {
  struct Attempt {
    std::string attempt_id;
    std::string store_id;
    std::vector<v1::Frame> frames;
    uint64_t acked_through = 0;
    bool is_ended = false;
  };
  std::string agent_id;
  std::string name;
  std::string boot_id;
  std::vector<Attempt> attempts;
  // Attempts that ended here; a real stream never repeats an Assign after their end.
  std::set<std::string> ended;
};

class ModelAgent final : public AttemptSource, public AgentEvents {
 public:
  ModelAgent(World& world, Spool& spool);
  ~ModelAgent() override { *is_alive_ = false; }

 private:
  std::vector<Held> HeldAttempts() override;
  Result<v1::Frame> ReadFrame(const std::string& attempt_id, uint64_t sequence) override;
  void OnAttached(const v1::Welcome&) override {}
  void OnDetached(const Status&, Nanos) override {}
  void OnRefused(const v1::HelloRefused& refused, bool) override {
    ADD_FAILURE() << "refused: " << refused.text();
  }
  void OnAssign(const v1::Assign& assign) override;
  void OnCancel(const v1::Cancel&) override {}
  void OnAcked(const std::string& attempt_id, uint64_t through) override;
  void OnUnsendableFrame(const std::string& attempt_id, uint64_t sequence,
                         const Status& why) override {
    ADD_FAILURE() << attempt_id << " " << sequence << " " << why.ToString();
  }

  Spool::Attempt* Find(const std::string& attempt_id);
  void AppendFrame(Spool::Attempt& attempt, bool is_final);
  // The attempt's next frame, some time from now.
  void RunOn(const std::string& attempt_id, int frames_left);

  World& world_;
  Spool& spool_;
  // Outlived by the tasks of this process.
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
  std::optional<AgentSession> session_;

  friend class World;
};

// What the controller keeps in its store: survives a restart of its process.
struct Store {
  std::string store_id;
  uint64_t epoch = 0;
  struct Trial {
    std::string agent_id;
    std::string leased_attempt;  // empty: pending or done
    bool is_done = false;
  };
  std::vector<Trial> trials;
  std::map<std::string, std::map<uint64_t, std::string>> frames;  // attempt -> sequence -> bytes
  std::set<std::string> known_attempts;
  int num_finals = 0;
};

class ModelController final : public RegistryEvents, public HostDirectory {
 public:
  ModelController(World& world, Store& store);
  ~ModelController() override { *is_alive_ = false; }
  SessionRegistry& registry() { return *registry_; }

 private:
  std::optional<std::string> HostIdOfName(const std::string&) const override {
    return std::nullopt;
  }
  bool IsRetired(const std::string&) const override { return false; }
  void OnAgentAttached(const std::string& agent_id, const v1::Hello& hello) override;
  void OnAgentDetached(const std::string&, const Status& why) override;
  void OnAccepted(const std::string&, const v1::Accepted&) override {}
  void OnRefused(const std::string& agent_id, const v1::Refused& refused) override;
  void OnFrame(const std::string& agent_id, const v1::Frame& frame) override;
  void OnHeartbeat(const std::string&, const v1::Heartbeat&) override {}

  void Commit();
  void CommitFrame(const v1::Frame& frame);
  // Leases the agent's next trial where none is leased.
  void LeaseNext(const std::string& agent_id);
  void SendAssign(const std::string& agent_id, const std::string& attempt_id);

  World& world_;
  Store& store_;
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
  std::vector<std::pair<std::string, v1::Frame>> pending_;
  bool commit_is_due_ = false;
  std::optional<SessionRegistry> registry_;
};

// Everything of one history.
class World {
 public:
  World(uint64_t seed, const NetworkFaults& faults, bool keeps_order);
  void Run();

  Nanos UpTo(Nanos most) {
    return Nanos(std::uniform_int_distribution<int64_t>(0, most.count())(random));
  }
  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); }

  void RestartAgent(int index) {
    agents[index].reset();
    agents[index] = std::make_unique<ModelAgent>(*this, spools[index]);
  }
  void RestartController(Nanos down) {
    network.Listen(nullptr);
    network.BreakLinks();
    controller.reset();
    executor.Advance(down);
    ++store.epoch;
    controller = std::make_unique<ModelController>(*this, store);
    network.Listen(&controller->registry());
  }
  bool IsDone() const;
  uint64_t CommittedThrough(const std::string& attempt_id) const;

  std::mt19937_64 random;
  FakeClock clock;
  FakeExecutor executor{clock};
  IdSource ids;
  FakeNetwork network;
  const NetworkFaults faults;
  const bool keeps_order;
  Store store;
  std::vector<Spool> spools;
  std::unique_ptr<ModelController> controller;
  std::vector<std::unique_ptr<ModelAgent>> agents;
};

}  // namespace pipeyard::session
