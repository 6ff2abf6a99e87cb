// The single-node fastpath on a real machine: the one node's real id, and the flip when a second
// node comes online.
#include "workloads/numa/hotplug.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/guest/real_arenas.h"
#include "workloads/memory/policy.h"

namespace pipeyard {
namespace {

using memory::AllocationPath;
using memory::FastpathSwitches;

// The nodes whose memory this process may use. Behind a node that came online they follow a moment
// later, without an event; until then mbind() refuses the node.
NodeMask MemoryAllowed() {
  std::ifstream status("/proc/self/status");
  for (std::string key, value; status >> key && std::getline(status >> std::ws, value);) {
    if (key == "Mems_allowed_list:") return numa::ParseNodeMask(value).value();
  }
  return NodeMask();
}

class RealFastpathTest : public RealArenasTest {
 protected:
  void SetUp() override { ASSERT_EQ(AllNodes().Count(), 1) << "for machines with one node"; }

  static PageAllocatorOptions FastpathOn() {
    PageAllocatorOptions options;
    options.fastpath = FastpathSwitches::All();
    return options;
  }
};

TEST_F(RealFastpathTest, UsesTheNodeThatHasTheMemory) {
  Create(FastpathOn());
  PageWorker worker = pages_->MakeWorker(0);

  const PageId page = pages_->Allocate(worker);

  EXPECT_TRUE(pages_->IsFastpathOn(AllocationPath::kPage));
  EXPECT_EQ(pages_->NodeOf(page), AllNodes().Nodes().front());
  EXPECT_EQ(KernelsNodeOf(page), AllNodes().Nodes().front());
  pages_->Put(worker, page);
}

// Whoever runs this plugs node 1 in when it reads "plug".
TEST_F(RealFastpathTest, IsOffOnceASecondNodeIsThere) {
  constexpr NodeId kSecond = 1;
  PageAllocatorOptions options = FastpathOn();
  options.offline_nodes = {{kSecond, kArenaPages * HostPageBytes()}};
  Create(options);
  PageWorker worker = pages_->MakeWorker(0);
  worker.policy.SetPolicy(memory::ParsePolicy("preferred:1").value());
  const auto listener = numa::HotplugListener::Open();
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  const PageId before = pages_->Allocate(worker);
  EXPECT_EQ(KernelsNodeOf(before), 0);
  EXPECT_TRUE(pages_->IsFastpathOn(AllocationPath::kPage));

  std::printf("\nplug\n");
  std::fflush(stdout);
  std::set<std::string> events;
  while (!events.contains("node1 add") || !RealTopology().memory_nodes().Contains(kSecond)) {
    pollfd readable = {(*listener)->fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&readable, 1, /*timeout=*/-1), 1);
    for (const numa::HotplugEvent& event : (*listener)->Read()) events.insert(event.ToString());
  }
  while (!MemoryAllowed().Contains(kSecond)) ::sched_yield();
  const Status status = pages_->OnlineNode(kSecond);

  ASSERT_TRUE(status.ok()) << status.message();
  for (const auto path : {AllocationPath::kFault, AllocationPath::kPage, AllocationPath::kBulk,
                          AllocationPath::kSlab}) {
    EXPECT_FALSE(pages_->IsFastpathOn(path));
  }
  const PageId after = pages_->Allocate(worker);
  ASSERT_NE(after, kNoPage);
  EXPECT_EQ(pages_->NodeOf(after), kSecond);
  EXPECT_EQ(KernelsNodeOf(after), kSecond);
  pages_->Put(worker, before);
  pages_->Put(worker, after);
}

}  // namespace
}  // namespace pipeyard
