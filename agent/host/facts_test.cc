#include "agent/host/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace pipeyard::host {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;

using Tree = std::map<std::string, std::string>;

numa::ReadFile Reader(const Tree& tree) {
  return [tree](const std::string& path) -> Result<std::string> {
    const auto it = tree.find(path);
    if (it == tree.end()) return NotFound("open " + path + ": ENOENT");
    return it->second;
  };
}

Tree OneNode() {
  return {
      {"/proc/sys/kernel/osrelease", "6.1.0-39-amd64\n"},
      {"/proc/cpuinfo",
       "processor\t: 0\nmodel name\t: Fast CPU @ 3.00GHz\nmicrocode\t: 0x42\nflags\t\t: fpu vme\n"},
      {"/proc/meminfo", "MemTotal:       1048576 kB\nMemFree:        1 kB\n"},
      {"/sys/devices/system/cpu/online", "0-3\n"},
      {"/sys/devices/system/node/online", "0\n"},
      {"/sys/devices/system/node/has_memory", "0\n"},
      {"/sys/devices/system/node/has_cpu", "0\n"},
      {"/sys/devices/system/node/node0/cpulist", "0-3\n"},
      {"/sys/devices/system/node/node0/distance", "10\n"},
      {"/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       1048576 kB\n"}};
}

// The second node has memory and no CPU, as a memory expander has.
Tree TwoNodes() {
  Tree tree = OneNode();
  tree["/sys/devices/system/node/online"] = "0-1\n";
  tree["/sys/devices/system/node/has_memory"] = "0-1\n";
  tree["/sys/devices/system/node/node0/distance"] = "10 21\n";
  tree["/sys/devices/system/node/node1/cpulist"] = "\n";
  tree["/sys/devices/system/node/node1/distance"] = "21 10\n";
  tree["/sys/devices/system/node/node1/meminfo"] = "Node 1 MemTotal:       2097152 kB\n";
  return tree;
}

TEST(HostFacts, OneNodeMachine) {
  const HostFactsReport report = ReadHostFacts(Reader(OneNode()), "x86_64", 4096);

  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.facts.kernel_release(), "6.1.0-39-amd64");
  EXPECT_EQ(report.facts.machine(), "x86_64");
  EXPECT_EQ(report.facts.cpu_model(), "Fast CPU @ 3.00GHz");
  EXPECT_EQ(report.facts.online_cpus(), 4u);
  EXPECT_EQ(report.facts.memory_bytes(), uint64_t{1} << 30);
  EXPECT_EQ(report.facts.page_size_bytes(), 4096u);
  EXPECT_EQ(report.facts.hypervisor(), "");
  ASSERT_EQ(report.facts.nodes_size(), 1);
  EXPECT_EQ(report.facts.nodes(0).cpus(), "0-3");
  EXPECT_EQ(report.facts.more().at("microcode"), "0x42");
}

TEST(HostFacts, MemoryOnlyNodeHasNoCpusAndDistancesAreRowMajor) {
  const HostFactsReport report = ReadHostFacts(Reader(TwoNodes()), "x86_64", 4096);

  ASSERT_EQ(report.facts.nodes_size(), 2) << testing::PrintToString(report.problems);
  EXPECT_EQ(report.facts.nodes(1).id(), 1);
  EXPECT_EQ(report.facts.nodes(1).cpus(), "");
  EXPECT_EQ(report.facts.nodes(1).memory_bytes(), uint64_t{2} << 30);
  EXPECT_THAT(report.facts.distances(), ElementsAre(10, 21, 21, 10));
}

TEST(HostFacts, SettingsThatExplainAChange) {
  Tree tree = OneNode();
  tree["/sys/kernel/mm/transparent_hugepage/enabled"] = "always [madvise] never\n";
  tree["/proc/sys/fs/pipe-max-size"] = "1048576\n";
  tree["/proc/sys/kernel/tainted"] = "0\n";
  tree["/proc/sys/kernel/numa_balancing"] = "";

  const auto more = ReadHostFacts(Reader(tree), "x86_64", 4096).facts.more();

  EXPECT_THAT(more, Contains(Pair("thp", "madvise")));
  EXPECT_THAT(more, Contains(Pair("pipe-max-size", "1048576")));
  EXPECT_THAT(more, Contains(Pair("taint", "0")));
  EXPECT_THAT(more, Not(Contains(Key("numa_balancing"))));
  EXPECT_THAT(more, Not(Contains(Key("governor"))));
}

TEST(HostFacts, HypervisorIsNamedWhereItCanBeTold) {
  struct Case {
    const char* flags;
    const char* product;
    const char* hypervisor;
  };
  for (const Case& c :
       {Case{"fpu", "PowerEdge R750", ""}, Case{"fpu hypervisor", "Standard PC", "unknown"},
        Case{"fpu", "QEMU Virtual Machine", "qemu"}, Case{"fpu hypervisor", "VMware7,1", "vmware"},
        Case{"fpu hypervisor", "Amazon EC2", "ec2"}, Case{"fpu", "Amazon EC2", ""}}) {
    Tree tree = OneNode();
    tree["/proc/cpuinfo"] = std::string("flags\t: ") + c.flags + "\n";
    tree["/sys/class/dmi/id/product_name"] = c.product;
    EXPECT_EQ(ReadHostFacts(Reader(tree), "x86_64", 4096).facts.hypervisor(), c.hypervisor)
        << c.product;
  }
}

TEST(HostFacts, ContainerThatHidesEverythingGivesWhatThereIsAndSaysWhatIsMissing) {
  const HostFactsReport report = ReadHostFacts(Reader({}), "aarch64", 65536);

  EXPECT_EQ(report.facts.machine(), "aarch64");
  EXPECT_EQ(report.facts.nodes_size(), 0);
  EXPECT_EQ(report.facts.memory_bytes(), 0u);
  EXPECT_EQ(report.problems.size(), 3u);
}

TEST(HostFacts, NonsenseInFilesIsAProblemNotACrash) {
  Tree tree = TwoNodes();
  tree["/sys/devices/system/node/node0/distance"] = "ten\n";
  tree["/proc/meminfo"] = "MemTotal: lots\n";
  tree["/proc/cpuinfo"] = std::string("\0\xff\xfe: :\n\x01", 8);
  tree["/proc/sys/kernel/tainted"] = std::string(100'000, '\x01');

  const HostFactsReport report = ReadHostFacts(Reader(tree), "x86_64", 4096);

  EXPECT_EQ(report.facts.nodes_size(), 0);
  EXPECT_EQ(report.problems.size(), 1u);
  EXPECT_LE(report.facts.more().at("taint").size(), 4096u);
}

TEST(HostFacts, OfThisMachineAreThere) {
  const HostFactsReport report = ReadHostFacts();

  EXPECT_GT(report.facts.online_cpus(), 0u);
  EXPECT_GT(report.facts.memory_bytes(), 0u);
  EXPECT_GE(report.facts.nodes_size(), 1);
  EXPECT_EQ(report.facts.distances_size(), report.facts.nodes_size() * report.facts.nodes_size());
}

TEST(HostName, IsMadeLegal) {
  EXPECT_EQ(HostNameFrom("vera-2s.example.org"), "vera-2s.example.org");
  EXPECT_EQ(HostNameFrom("a b/c"), "a-b-c");
  EXPECT_EQ(HostNameFrom("-.x.-"), "x");
  EXPECT_EQ(HostNameFrom("///"), "host");
  EXPECT_EQ(HostNameFrom(""), "host");
  EXPECT_EQ(HostNameFrom(std::string(1000, 'x')).size(), 253u);
}

}  // namespace
}  // namespace pipeyard::host
