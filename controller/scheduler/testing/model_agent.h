// ModelAgent: an agent for the simulation, with a spool that survives it. It takes, refuses, ends
// and resends as the protocol says and as its dice fall; links are its owner's business.
//
// Thread safety: confined to one thread. Ownership: borrows dice and clock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/scheduler/events.h"
#include "pipeyard/v1/agent.pb.h"

namespace pipeyard::scheduler {

class ModelAgent {
 public:
  ModelAgent(uint32_t n, std::string store_id, std::mt19937_64& dice, const Clock& clock);

  // A new link: says Hello and resends what is not acknowledged.
  void Link(uint64_t session, uint64_t epoch);
  // What is under way in both directions is lost.
  void Unlink();
  // The process dies with what runs, and comes back without a link.
  void Restart();
  void OnAssign(const v1::Assign& assign);
  void OnCancel(const v1::Cancel& cancel);
  void OnAck(const v1::Ack& ack);
  void Beat();
  // Ends what runs, one way or another.
  void FinishJob();

  const std::string& host_id() const { return host_id_; }
  bool is_linked() const { return is_linked_; }
  uint64_t session() const { return session_; }
  bool has_jobs() const { return !jobs_.empty(); }
  // It was asked to run an attempt that it had run to the end.
  bool ran_twice() const { return ran_twice_; }

  bool is_gone = false;  // for good
  std::deque<Event> up;
  std::deque<v1::ControllerMessage> down;

 private:
  struct Job {
    v1::AttemptPhase phase = v1::ATTEMPT_PHASE_RUNNING;
    MonotonicTime started{0};
    std::vector<v1::Frame> frames;
    uint64_t acked = 0;
    uint64_t sent = 0;  // on this link
  };

  bool Chance(double p) { return std::uniform_real_distribution<>(0, 1)(dice_) < p; }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(dice_() % n); }
  bool IsRunning() const;
  google::protobuf::RepeatedPtrField<v1::HeldAttempt> Held() const;
  void Refuse(const v1::Assign& assign, v1::Refused::Reason reason);
  void EndJob(const std::string& id, v1::Outcome outcome, const std::string& reason);
  void SendFrames();

  const uint32_t n_;
  const std::string host_id_;
  const std::string store_id_;
  std::mt19937_64& dice_;
  const Clock& clock_;
  bool is_linked_ = false;
  uint64_t session_ = 0;
  uint64_t newest_epoch_ = 0;
  bool ran_twice_ = false;
  std::map<std::string, Job> jobs_;
  std::set<std::string> finished_;  // acknowledged to the end, and forgotten
};

}  // namespace pipeyard::scheduler
