#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "workloads/numa/topology.h"

namespace pipeyard::numa {
namespace {

// Linux's NR_CPUS is at most 8192 on the architectures met here; a larger number in a file is
// nonsense.
constexpr int kMaxCpuId = 65535;
constexpr char kNodeDir[] = "/sys/devices/system/node/";
constexpr char kOnlineCpus[] = "/sys/devices/system/cpu/online";
constexpr char kMeminfo[] = "/proc/meminfo";

Result<std::vector<int>> ReadList(const ReadFile& read, const std::string& path, int max) {
  PIPEYARD_ASSIGN_OR_RETURN(const std::string text, read(path));
  Result<std::vector<int>> list = ParseNumberList(text, max);
  if (!list.ok()) return list.status().WithContext(path);
  return list;
}

// The value of a "...MemTotal:   16 kB" line, in bytes.
Result<int64_t> ReadMemTotal(const ReadFile& read, const std::string& path) {
  PIPEYARD_ASSIGN_OR_RETURN(const std::string text, read(path));
  constexpr std::string_view kKey = "MemTotal:";
  const size_t key = text.find(kKey);
  if (key != std::string::npos) {
    const size_t begin = text.find_first_not_of(' ', key + kKey.size());
    int64_t kilobytes = -1;
    if (begin != std::string::npos) {
      const auto [end, error] =
          std::from_chars(text.data() + begin, text.data() + text.size(), kilobytes);
      const bool is_number =
          error == std::errc() && kilobytes >= 0 && kilobytes <= INT64_MAX / 1024;
      if (is_number && std::string_view(end, text.data() + text.size() - end).starts_with(" kB")) {
        return kilobytes * 1024;
      }
    }
  }
  return InvalidArgument(path + ": no line 'MemTotal: N kB'");
}

Result<std::vector<int>> ReadDistances(const ReadFile& read, const std::string& path) {
  PIPEYARD_ASSIGN_OR_RETURN(const std::string text, read(path));
  std::vector<int> distances;
  const char* at = text.data();
  const char* const last = text.data() + text.size();
  for (;;) {
    while (at != last && (*at == ' ' || *at == '\n')) ++at;
    if (at == last) return distances;
    int distance = 0;
    const auto [end, error] = std::from_chars(at, last, distance);
    if (error != std::errc() || (end != last && *end != ' ' && *end != '\n')) {
      return InvalidArgument(path + ": '" + text.substr(0, 40) + "': not a row of distances");
    }
    distances.push_back(distance);
    at = end;
  }
}

Result<Topology> OneNode(const ReadFile& read, std::vector<CpuId> cpus) {
  PIPEYARD_ASSIGN_OR_RETURN(const int64_t memory_bytes, ReadMemTotal(read, kMeminfo));
  Node node;
  node.cpus = cpus;
  node.memory_bytes = memory_bytes;
  node.distances = {kLocalDistance};
  return Topology::Make({std::move(node)}, std::move(cpus), /*is_emulated=*/false);
}

}  // namespace

ReadFile HostFiles() {
  return [](const std::string& path) -> Result<std::string> {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus("open " + path, errno);
    std::string text;
    char buffer[4096];
    ssize_t count = 0;
    while ((count = ::read(fd, buffer, sizeof(buffer))) > 0)
      text.append(buffer, static_cast<size_t>(count));
    const int error = errno;
    ::close(fd);
    if (count < 0) return ErrnoStatus("read " + path, error);
    return text;
  };
}

Result<Topology> ReadTopology(const ReadFile& read) {
  Result<std::vector<int>> host_cpus = ReadList(read, kOnlineCpus, kMaxCpuId);
  if (!host_cpus.ok()) {
    if (host_cpus.status().code() == StatusCode::kInvalidArgument) return host_cpus.status();
    return Unavailable("topology: " + host_cpus.status().message());
  }
  const std::string node_dir(kNodeDir);
  Result<std::vector<int>> online = ReadList(read, node_dir + "online", kMaxNodes - 1);
  if (!online.ok()) {
    if (online.status().code() == StatusCode::kInvalidArgument) return online.status();
    return OneNode(read, std::move(host_cpus).value());
  }
  if (online->empty()) return InvalidArgument(node_dir + "online: names no node");
  std::vector<Node> nodes;
  for (const NodeId id : *online) {
    const std::string dir = node_dir + "node" + std::to_string(id) + "/";
    Node node;
    node.id = id;
    Result<std::vector<int>> cpus = ReadList(read, dir + "cpulist", kMaxCpuId);
    if (!cpus.ok()) {
      if (cpus.status().code() == StatusCode::kInvalidArgument) return cpus.status();
      // A container that shows the list of nodes but not the nodes.
      if (online->size() == 1) return OneNode(read, std::move(host_cpus).value());
      return Unavailable("topology: " + cpus.status().message());
    }
    node.cpus = std::move(cpus).value();
    PIPEYARD_ASSIGN_OR_RETURN(node.memory_bytes, ReadMemTotal(read, dir + "meminfo"));
    Result<std::vector<int>> distances = ReadDistances(read, dir + "distance");
    if (distances.ok()) {
      node.distances = std::move(distances).value();
    } else if (distances.status().code() == StatusCode::kInvalidArgument) {
      return distances.status();
    } else {
      for (const NodeId other : *online) {
        node.distances.push_back(other == id ? kLocalDistance : kDefaultRemoteDistance);
      }
    }
    nodes.push_back(std::move(node));
  }
  return Topology::Make(std::move(nodes), std::move(host_cpus).value(), /*is_emulated=*/false);
}

}  // namespace pipeyard::numa
