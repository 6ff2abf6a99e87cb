// Another node comes online while a transfer runs.
#include "workloads/load/topology_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>

#include "proto/settings/variant.h"
#include "workloads/load/engine_pipes.h"
#include "workloads/load/load.h"
#include "workloads/load/result_testing.h"

namespace pipeyard::load {
namespace {

using settings::Value;
using std::string_literals::operator""s;
using testing::HasSubstr;

const std::string kOnline =
    "online@/devices/system/memory/memory32\0ACTION=online\0"
    "DEVPATH=/devices/system/memory/memory32\0SUBSYSTEM=memory\0"s;

// A machine on which node 1 gets memory as soon as an event has been sent.
class Hotplug : public testing::Test {
 protected:
  Hotplug() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends_), 0);
    listener_ = std::make_unique<numa::HotplugListener>(ends_[0]);
    surroundings_.hotplug = listener_.get();
    surroundings_.memory_nodes = [this]() -> Result<numa::NodeMask> {
      // The first answer is that of the beginning.
      return num_asked_++ == 0 ? numa::NodeMask::Of({0}) : numa::NodeMask::Of({0, 1});
    };
  }
  ~Hotplug() override { ::close(ends_[1]); }

  void Send(const std::string& message) {
    ASSERT_EQ(::send(ends_[1], message.data(), message.size(), 0),
              static_cast<ssize_t>(message.size()));
  }

  static settings::Variant VariantOf(const std::string& workload, const std::string& target,
                                     std::map<std::string, Value> values) {
    Result<settings::Variant> variant = settings::MakeVariant(workload, target, values);
    EXPECT_TRUE(variant.ok()) << variant.status().ToString();
    return std::move(*variant);
  }

  int ends_[2];
  std::unique_ptr<numa::HotplugListener> listener_;
  Surroundings surroundings_;
  int num_asked_ = 0;
};

TEST_F(Hotplug, MakesTheAttemptVoidAndKeepsItsNumbers) {
  for (const std::string target : {"engine", "kernel"}) {
    for (const std::string workers : {"threads", "processes"}) {
      num_asked_ = 0;
      Send(kOnline);
      std::map<std::string, Value> values = {
          {"warmup", int64_t{5'000'000}}, {"duration", int64_t{200'000'000}}, {"workers", workers}};
      if (target == "engine") values["engine.fastpath"] = "on"s;
      const v1::WorkerResult result =
          RunWorkload(VariantOf("transfer", target, values), surroundings_);

      EXPECT_EQ(result.outcome(), v1::OUTCOME_VOID) << result.reason_text();
      EXPECT_EQ(result.reason_code(), "topology_changed");
      EXPECT_THAT(result.reason_text(), HasSubstr("memory32 online"));
      EXPECT_GT(result.metrics_size(), 0);
      EXPECT_GT(CounterOf(result, "messages_written"), 0);
      EXPECT_GE(CounterOf(result, "fastpath_pages_after_online"), 0);
    }
  }
}

TEST_F(Hotplug, WhileMessagesArePassedMakesTheAttemptVoid) {
  Send(kOnline);
  const v1::WorkerResult result =
      RunWorkload(VariantOf("messaging", "engine", {{"groups", int64_t{1}}, {"fds", int64_t{2}}}),
                  surroundings_);

  EXPECT_EQ(result.reason_code(), "topology_changed");
  EXPECT_EQ(result.metrics_size(), 2);
}

TEST_F(Hotplug, TurnsTheFastpathsOfTheEngineOffAndCountsWhatTheyStillAllocated) {
  std::shared_ptr<EnginePipes> pipes;
  const Judgement made = EnginePipes::Create(
      VariantOf("transfer", "engine", {{"engine.fastpath", "on"s}}), 1, 1, 65536, pipes);
  ASSERT_TRUE(made.ok()) << made.reason_text;
  const auto is_on = [&] {
    return pipes->engine().pages().gates().IsFastpathOn(memory::AllocationPath::kPage);
  };
  if (!is_on()) GTEST_SKIP() << "this machine has several nodes with memory";
  EnginePipes::Worker worker = pipes->Attach(0);
  const std::byte byte{1};
  // One page is allocated between hearing and the flip.
  TopologyWatch watch(surroundings_, {[&](numa::NodeId node) {
                                        EXPECT_EQ(node, 1);
                                        EXPECT_EQ(pipes->Write(worker, 0, &byte, 1), 1);
                                        pipes->OnlineNode(node);
                                      },
                                      [&] { return pipes->FastpathPages(); }});
  watch.Look();
  EXPECT_TRUE(is_on());
  EXPECT_TRUE(watch.Judge().ok());
  EXPECT_TRUE(watch.counts().empty());

  Send("noise");
  watch.Look();
  EXPECT_TRUE(is_on());
  Send(kOnline);
  watch.Look();

  EXPECT_FALSE(is_on());
  EXPECT_EQ(watch.Judge().reason_code, "topology_changed");
  ASSERT_EQ(watch.counts().size(), 1u);
  EXPECT_EQ(watch.counts()[0].value, 1);
  const uint64_t pages = pipes->FastpathPages();
  std::byte received{0};
  EXPECT_EQ(pipes->Read(worker, 0, &received, 1), 1);
  EXPECT_EQ(pipes->Write(worker, 0, &byte, 1), 1);
  EXPECT_EQ(pipes->FastpathPages(), pages);
}

TEST_F(Hotplug, WithoutAnEventChangesNothing) {
  const v1::WorkerResult result =
      RunWorkload(VariantOf("messaging", "kernel", {{"groups", int64_t{1}}, {"fds", int64_t{2}}}),
                  surroundings_);

  EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  for (const v1::Counter& counter : result.counters()) {
    EXPECT_NE(counter.name(), "fastpath_pages_after_online");
  }
}

}  // namespace
}  // namespace pipeyard::load
