// Every disk operation of the spool fails, or meets power loss, in turn: what an OK was given for
// is found again, nothing else is.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "agent/spool/spool.h"
#include "base/faulty_env.h"

namespace pipeyard::spool {
namespace {

using Fault = FaultyEnv::Fault;
using Survives = FaultyEnv::Survives;

constexpr char kFolder[] = "/state/spool";
const std::vector<std::string> kAttempts = {"01931c2e-0000-7000-8000-000000000001",
                                            "01931c2e-0000-7000-8000-000000000002"};

v1::Assign Assignment(const std::string& attempt_id) {
  v1::Assign assign;
  assign.set_attempt_id(attempt_id);
  assign.set_store_id("01931c2e-0000-7000-8000-00000000000a");
  return assign;
}

v1::Frame Frame(int content, bool is_final) {
  v1::Frame frame;
  frame.add_counters()->set_value(content);
  frame.set_is_final(is_final);
  return frame;
}

// What the spool promised (an OK was returned) and what it was asked for.
struct Ledger {
  std::set<std::string> accepted;
  std::set<std::string> asked;
  std::map<std::string, uint64_t> frames_ok;
  std::map<std::string, uint64_t> frames_asked;
  std::map<std::string, uint64_t> acks_asked;
};

// Two attempts from journal to last acknowledgement. Stops at the first failure, as a process that
// dies there.
void LiveUntilFailure(FaultyEnv& env, Ledger& ledger) {
  auto spool = Spool::Open(env, {.folder = kFolder});
  if (!spool.ok()) return;
  for (const std::string& id : kAttempts) {
    ledger.asked.insert(id);
    if (!(*spool)->Accept(Assignment(id)).ok()) return;
    ledger.accepted.insert(id);
    ledger.frames_asked[id] = 2;
    if (!(*spool)->Append(id, {Frame(1, false), Frame(2, false)}).ok()) return;
    ledger.frames_ok[id] = 2;
    ledger.acks_asked[id] = 1;
    if (!(*spool)->Ack(id, 1).ok()) return;
    ledger.frames_asked[id] = 3;
    if (!(*spool)->Append(id, {Frame(3, true)}).ok()) return;
    ledger.frames_ok[id] = 3;
  }
  ledger.acks_asked[kAttempts[0]] = 3;
  if (!(*spool)->Ack(kAttempts[0], 3).ok()) return;
}

void CheckAgainstLedger(Spool& spool, const Ledger& ledger) {
  EXPECT_EQ(spool.recovered().num_quarantined, 0);
  for (const std::string& id : ledger.accepted) {
    const auto it = ledger.acks_asked.find(id);
    const bool may_be_gone = it != ledger.acks_asked.end() && it->second == 3;
    EXPECT_TRUE(spool.Find(id).has_value() || may_be_gone) << id;
  }
  for (const SpooledAttempt& attempt : spool.List()) {
    const std::string& id = attempt.attempt_id;
    EXPECT_TRUE(ledger.asked.contains(id));
    const auto count = [&](const std::map<std::string, uint64_t>& counts) {
      const auto it = counts.find(id);
      return it == counts.end() ? 0 : it->second;
    };
    EXPECT_GE(attempt.num_frames, count(ledger.frames_ok));
    EXPECT_LE(attempt.num_frames, count(ledger.frames_asked));
    EXPECT_LE(attempt.acked_through, count(ledger.acks_asked));
    EXPECT_EQ(attempt.is_final, attempt.num_frames == 3);
    EXPECT_TRUE(spool.ReadAssignment(id).ok());
    for (uint64_t i = 1; i <= attempt.num_frames; ++i) {
      const auto frame = spool.ReadFrame(id, i);
      ASSERT_TRUE(frame.ok()) << frame.status().ToString();
      EXPECT_EQ(frame->counters(0).value(), static_cast<int64_t>(i));
      EXPECT_EQ(frame->sequence(), i);
    }
  }
}

class SpoolFaultTest : public testing::TestWithParam<std::tuple<Fault, Survives>> {};

TEST_P(SpoolFaultTest, KeepsWhatItPromisedAndInventsNothingAtEveryStep) {
  const auto [fault, survives] = GetParam();
  for (int step = 0;; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    FaultyEnv env;
    ASSERT_TRUE(env.CreateDirs("/state").ok());
    ASSERT_TRUE(env.SyncDir("/").ok());
    Ledger ledger;
    env.Inject(fault, step);
    LiveUntilFailure(env, ledger);
    const bool was_hit = env.was_hit();
    env.Reboot(survives);

    auto reopened = Spool::Open(env, {.folder = kFolder});
    ASSERT_TRUE(reopened.ok()) << reopened.status().ToString();
    CheckAgainstLedger(**reopened, ledger);
    if (!was_hit) {
      EXPECT_EQ(ledger.frames_ok.at(kAttempts[1]), 3u);
      ASSERT_GT(step, 20);
      break;
    }
  }
}

// The process lives on: each failed call is repeated, as the agent does.
TEST(SpoolRetryTest, RepeatedCallsEndInTheSameStateAsUndisturbedOnes) {
  for (int step = 0;; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    FaultyEnv env;
    ASSERT_TRUE(env.CreateDirs("/state").ok());
    ASSERT_TRUE(env.SyncDir("/").ok());
    auto spool = Spool::Open(env, {.folder = kFolder});
    ASSERT_TRUE(spool.ok());
    env.Inject(Fault::kFail, step);
    const auto retried = [](const auto& call) { return call().ok() || call().ok(); };
    const std::string& id = kAttempts[0];

    EXPECT_TRUE(retried([&] { return (*spool)->Accept(Assignment(id)); }));
    EXPECT_TRUE(retried([&] { return (*spool)->Append(id, {Frame(1, false), Frame(2, false)}); }));
    EXPECT_TRUE(retried([&] { return (*spool)->Ack(id, 1); }));
    EXPECT_TRUE(retried([&] { return (*spool)->Append(id, {Frame(3, true)}); }));
    const bool was_hit = env.was_hit();
    env.Reboot(Survives::kSynced);

    auto reopened = Spool::Open(env, {.folder = kFolder});
    ASSERT_TRUE(reopened.ok());
    const auto found = (*reopened)->Find(id);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->num_frames, 3u);
    EXPECT_EQ(found->acked_through, 1u);
    EXPECT_TRUE(found->is_final);
    for (uint64_t i = 1; i <= 3; ++i) {
      EXPECT_EQ((*reopened)->ReadFrame(id, i)->counters(0).value(), static_cast<int64_t>(i));
    }
    if (!was_hit) break;
  }
}

// Recovery itself is cut short, at every step: the next one finds the same.
TEST(SpoolRecoveryFaultTest, InterruptedRecoveryLosesNothing) {
  for (int step = 0;; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    FaultyEnv env;
    ASSERT_TRUE(env.CreateDirs("/state").ok());
    ASSERT_TRUE(env.SyncDir("/").ok());
    {
      auto spool = Spool::Open(env, {.folder = kFolder});
      ASSERT_TRUE((*spool)->Accept(Assignment(kAttempts[0])).ok());
      ASSERT_TRUE((*spool)->Append(kAttempts[0], {Frame(1, false)}).ok());
      env.Inject(Fault::kPowerLoss, 1);
      EXPECT_FALSE((*spool)->Append(kAttempts[0], {Frame(2, true)}).ok());
      env.Reboot(Survives::kHalf);
    }
    env.Inject(Fault::kPowerLoss, step);
    (void)Spool::Open(env, {.folder = kFolder});
    const bool was_hit = env.was_hit();
    env.Reboot(Survives::kSynced);

    auto reopened = Spool::Open(env, {.folder = kFolder});
    ASSERT_TRUE(reopened.ok());
    EXPECT_EQ((*reopened)->Find(kAttempts[0])->num_frames, 1u);
    EXPECT_TRUE((*reopened)->Append(kAttempts[0], {Frame(2, true)}).ok());
    EXPECT_EQ((*reopened)->ReadFrame(kAttempts[0], 2)->counters(0).value(), 2);
    if (!was_hit) break;
  }
}

// PIPEYARD_SEED repeats a run.
uint64_t Seed() {
  const char* text = ::getenv("PIPEYARD_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
}

TEST(SpoolDamageTest, WhateverBytesALogHoldsAPrefixOfItsFramesIsFound) {
  const uint64_t seed = Seed();
  SCOPED_TRACE(testing::Message() << "PIPEYARD_SEED=" << seed);
  std::mt19937_64 random(seed);
  FaultyEnv env;
  ASSERT_TRUE(env.CreateDirs("/state").ok());
  const std::string path = std::string(kFolder) + "/" + kAttempts[0] + ".log";
  {
    auto spool = Spool::Open(env, {.folder = kFolder});
    ASSERT_TRUE((*spool)->Accept(Assignment(kAttempts[0])).ok());
    ASSERT_TRUE((*spool)->Append(kAttempts[0], {Frame(1, false), Frame(2, false)}).ok());
    ASSERT_TRUE((*spool)->Ack(kAttempts[0], 1).ok());
    ASSERT_TRUE((*spool)->Append(kAttempts[0], {Frame(3, true)}).ok());
  }
  const std::string good = *env.ReadFile(path);
  for (int round = 0; round < 500; ++round) {
    std::string bytes = good;
    for (uint64_t changes = 1 + random() % 3; changes > 0 && !bytes.empty(); --changes) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.resize(at);
          break;
        case 2:
          bytes.insert(at, std::string(random() % 20, static_cast<char>(random())));
          break;
        default:
          bytes.append(bytes, at);
          break;
      }
    }
    ASSERT_TRUE(env.WriteFileAtomic(path, bytes).ok());

    auto spool = Spool::Open(env, {.folder = kFolder});

    ASSERT_TRUE(spool.ok());
    if (const auto found = (*spool)->Find(kAttempts[0])) {
      ASSERT_LE(found->num_frames, 3u);
      ASSERT_EQ(found->is_final, found->num_frames == 3);
      for (uint64_t i = 1; i <= found->num_frames; ++i) {
        ASSERT_EQ((*spool)->ReadFrame(kAttempts[0], i)->counters(0).value(),
                  static_cast<int64_t>(i));
      }
    } else {
      ASSERT_EQ((*spool)->recovered().num_quarantined, 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, SpoolFaultTest,
                         testing::Combine(testing::Values(Fault::kFail, Fault::kPowerLoss),
                                          testing::Values(Survives::kSynced, Survives::kHalf,
                                                          Survives::kEverything)));

}  // namespace
}  // namespace pipeyard::spool
