// The order in which nodes stand in for each other, against what the kernel printed when it made
// its own.
#include <gtest/gtest.h>
#include <sys/klog.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/guest/machine.h"

namespace pipeyard {
namespace {

// The kernel's messages.
std::string KernelLog() {
  constexpr int kReadAll = 3;      // SYSLOG_ACTION_READ_ALL
  constexpr int kSizeBuffer = 10;  // SYSLOG_ACTION_SIZE_BUFFER
  std::string log(static_cast<size_t>(::klogctl(kSizeBuffer, nullptr, 0)), '\0');
  const int size = ::klogctl(kReadAll, log.data(), static_cast<int>(log.size()));
  log.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return log;
}

// By node; where the kernel made its lists several times, the last of them.
std::map<numa::NodeId, std::vector<numa::NodeId>> KernelOrders() {
  static constexpr char kPrefix[] = "Fallback order for Node ";
  std::map<numa::NodeId, std::vector<numa::NodeId>> orders;
  std::istringstream log(KernelLog());
  for (std::string line; std::getline(log, line);) {
    const size_t at = line.find(kPrefix);
    if (at == std::string::npos) continue;
    std::istringstream words(line.substr(at + sizeof(kPrefix) - 1));
    numa::NodeId home = -1;
    char colon = 0;
    words >> home >> colon;
    orders[home].clear();
    for (numa::NodeId node; words >> node;) orders[home].push_back(node);
  }
  return orders;
}

TEST(KernelFallback, IsTheTopologys) {
  const numa::Topology topology = RealTopology();
  const auto orders = KernelOrders();

  for (const numa::Node& node : topology.nodes()) {
    ASSERT_TRUE(orders.contains(node.id)) << "the kernel printed no order for node " << node.id;
    EXPECT_EQ(topology.FallbackOrder(node.id), orders.at(node.id)) << "from node " << node.id;
  }
}

}  // namespace
}  // namespace pipeyard
