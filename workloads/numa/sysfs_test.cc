#include <gtest/gtest.h>

#include <map>

#include "workloads/numa/topology.h"

namespace pipeyard::numa {
namespace {

using Tree = std::map<std::string, std::string>;

const std::string kNodes = "/sys/devices/system/node/";
const std::string kCpus = "/sys/devices/system/cpu/online";

ReadFile FilesOf(Tree tree) {
  return [tree = std::move(tree)](const std::string& path) -> Result<std::string> {
    const auto file = tree.find(path);
    if (file == tree.end()) return NotFound("open " + path);
    return file->second;
  };
}

void AddNode(Tree& tree, int id, const std::string& cpus, const std::string& distances,
             int64_t kilobytes = 1048576) {
  const std::string dir = kNodes + "node" + std::to_string(id) + "/";
  tree[dir + "cpulist"] = cpus + "\n";
  tree[dir + "distance"] = distances + "\n";
  tree[dir + "meminfo"] = "\nNode " + std::to_string(id) +
                          " MemTotal:       " + std::to_string(kilobytes) + " kB\nNode " +
                          std::to_string(id) + " MemFree:  7 kB\n";
}

Tree TwoSockets() {
  Tree tree = {{kCpus, "0-7\n"}, {kNodes + "online", "0-1\n"}};
  AddNode(tree, 0, "0-3", "10 21");
  AddNode(tree, 1, "4-7", "21 10");
  return tree;
}

TEST(ReadTopology, ReadsTwoSockets) {
  const Result<Topology> topology = ReadTopology(FilesOf(TwoSockets()));

  ASSERT_TRUE(topology.ok()) << topology.status().ToString();
  EXPECT_FALSE(topology->is_emulated());
  EXPECT_EQ(topology->online(), NodeMask::Of({0, 1}));
  EXPECT_EQ(topology->NodeOfCpu(5), 1);
  EXPECT_EQ(topology->Distance(0, 1), 21);
  EXPECT_EQ(topology->Find(1)->memory_bytes, int64_t{1} << 30);
}

TEST(ReadTopology, ReadsMemorylessAndCpulessNodesWithGapsInTheirNumbers) {
  Tree tree = {{kCpus, "0-3\n"}, {kNodes + "online", "0,2,4\n"}};
  AddNode(tree, 0, "0-1", "10 20 17");
  AddNode(tree, 2, "2-3", "20 10 17", 0);
  AddNode(tree, 4, "", "17 17 10");
  const Result<Topology> topology = ReadTopology(FilesOf(tree));

  ASSERT_TRUE(topology.ok()) << topology.status().ToString();
  EXPECT_EQ(topology->memory_nodes(), NodeMask::Of({0, 4}));
  EXPECT_TRUE(topology->Find(4)->cpus.empty());
  EXPECT_EQ(topology->LocalMemoryNode(2), 4);
}

TEST(ReadTopology, AKernelWithoutNumaIsOneNode) {
  const Tree tree = {{kCpus, "0-3\n"},
                     {"/proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n"}};
  const Result<Topology> topology = ReadTopology(FilesOf(tree));

  ASSERT_TRUE(topology.ok()) << topology.status().ToString();
  EXPECT_EQ(topology->online(), NodeMask::Of({0}));
  EXPECT_EQ(topology->cpus(), (std::vector<CpuId>{0, 1, 2, 3}));
  EXPECT_EQ(topology->Find(0)->memory_bytes, 2048 * 1024);
}

TEST(ReadTopology, AContainerThatShowsTheListButNotTheNodeIsOneNode) {
  const Tree tree = {
      {kCpus, "0\n"}, {kNodes + "online", "0\n"}, {"/proc/meminfo", "MemTotal: 2048 kB\n"}};

  EXPECT_TRUE(ReadTopology(FilesOf(tree)).ok());
}

TEST(ReadTopology, AbsentDistancesAreTheDefaults) {
  Tree tree = TwoSockets();
  tree.erase(kNodes + "node0/distance");
  const Result<Topology> topology = ReadTopology(FilesOf(tree));

  ASSERT_TRUE(topology.ok());
  EXPECT_EQ(topology->Distance(0, 1), 20);
}

// What containers and broken firmware show: each is refused with the name of the file, none is
// believed.
TEST(ReadTopology, RefusesNonsenseAndNamesTheFile) {
  struct Case {
    std::string path;
    std::string content;
  };
  const Case cases[] = {
      {kNodes + "online", "can't be true"},
      {kNodes + "online", ""},
      {kNodes + "online", "0-4294967295"},
      {kNodes + "online", "1-0"},
      {kNodes + "node0/cpulist", "garbage"},
      {kNodes + "node0/cpulist", "0-3,"},
      {kNodes + "node0/cpulist", "0-99999999"},
      {kNodes + "node0/cpulist", "0-4"},  // CPU 4 is in node 1 too
      {kNodes + "node0/distance", "10"},
      {kNodes + "node0/distance", "10 21 31"},
      {kNodes + "node0/distance", "10 twenty"},
      {kNodes + "node0/distance", "0 0"},
      {kNodes + "node0/meminfo", ""},
      {kNodes + "node0/meminfo", "MemTotal: lots"},
      {kNodes + "node0/meminfo", "MemTotal: -5 kB"},
      {kNodes + "node0/meminfo", "MemTotal: 5 MB"},
      {kNodes + "node0/meminfo", "MemTotal: 99999999999999999999 kB"},
      {kCpus, "0-"},
  };
  for (const Case& c : cases) {
    Tree tree = TwoSockets();
    tree[c.path] = c.content;
    const Status status = ReadTopology(FilesOf(tree)).status();

    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.path << ": " << c.content;
    const bool names_it = status.message().find(c.path) != std::string::npos ||
                          status.message().find("node ") != std::string::npos;
    EXPECT_TRUE(names_it) << status.message();
  }
}

TEST(ReadTopology, WithoutCpusThereIsNothingToDescribe) {
  EXPECT_EQ(ReadTopology(FilesOf({})).status().code(), StatusCode::kUnavailable);
}

TEST(ReadTopology, ReadsThisMachine) {
  const Result<Topology> topology = ReadTopology(HostFiles());

  ASSERT_TRUE(topology.ok()) << topology.status().ToString();
  EXPECT_FALSE(topology->cpus().empty());
  EXPECT_FALSE(topology->memory_nodes().IsEmpty());
}

}  // namespace
}  // namespace pipeyard::numa
