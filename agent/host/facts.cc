#include "agent/host/facts.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "workloads/numa/node_mask.h"

namespace pipeyard::host {
namespace {

// The protocol's limits for facts and names (proto/session/messages.h).
constexpr size_t kMaxFactBytes = 4096;
constexpr size_t kMaxNameBytes = 253;

std::string Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kBlank) - begin + 1));
}

// Firmware and device trees hold what they like; what travels is printable ASCII.
std::string AsFact(std::string_view text) {
  std::string fact = Trim(text.substr(0, text.find('\0'))).substr(0, kMaxFactBytes);
  for (char& c : fact) {
    if (c == '\t' || c == '\n') c = ' ';
    if (c < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return fact;
}

// The first "key : value" line of /proc/cpuinfo.
std::optional<std::string> CpuInfo(std::string_view text, std::string_view key) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos && Trim(line.substr(0, colon)) == key) {
      return AsFact(line.substr(colon + 1));
    }
    begin = end + 1;
  }
  return std::nullopt;
}

bool HasWord(const std::string& text, std::string_view word) {
  return fmt::format(" {} ", text).find(fmt::format(" {} ", word)) != std::string::npos;
}

// "always [madvise] never" -> "madvise".
std::string Chosen(const std::string& text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']', open);
  return open == std::string::npos || close == std::string::npos
             ? text
             : text.substr(open + 1, close - open - 1);
}

std::string ReadCpuModel(const numa::ReadFile& read, const std::string& cpuinfo) {
  for (const std::string_view key : {"model name", "cpu model", "Model", "cpu"}) {
    if (const auto model = CpuInfo(cpuinfo, key); model && !model->empty()) return *model;
  }
  if (const auto part = CpuInfo(cpuinfo, "CPU part")) {
    return fmt::format("implementer {} part {}", CpuInfo(cpuinfo, "CPU implementer").value_or("?"),
                       *part);
  }
  const Result<std::string> model = read("/proc/device-tree/model");
  return model.ok() ? AsFact(*model) : "";
}

// Vendors and products as DMI names them.
constexpr std::array<std::array<std::string_view, 2>, 10> kHypervisorWords{{
    {"QEMU", "qemu"},
    {"KVM", "kvm"},
    {"VMware", "vmware"},
    {"VirtualBox", "virtualbox"},
    {"Xen", "xen"},
    {"Virtual Machine", "hyperv"},
    {"Google Compute Engine", "gce"},
    {"Amazon EC2", "ec2"},
    {"Parallels", "parallels"},
    {"bhyve", "bhyve"},
}};

std::string ReadHypervisor(const numa::ReadFile& read, const std::string& cpuinfo) {
  const Result<std::string> type = read("/sys/hypervisor/type");
  if (type.ok() && !AsFact(*type).empty()) return AsFact(*type);
  const bool is_guest = HasWord(CpuInfo(cpuinfo, "flags").value_or(""), "hypervisor");
  for (const char* file : {"/sys/class/dmi/id/product_name", "/sys/class/dmi/id/sys_vendor"}) {
    const Result<std::string> text = read(file);
    if (!text.ok()) continue;
    for (const auto& [word, name] : kHypervisorWords) {
      // Amazon's and Google's names stand on their bare-metal machines as well.
      const bool is_cloud = name == "gce" || name == "ec2";
      if (text->find(word) != std::string::npos && (is_guest || !is_cloud))
        return std::string(name);
    }
  }
  return is_guest ? "unknown" : "";
}

uint64_t ReadMemoryBytes(const numa::ReadFile& read) {
  const Result<std::string> text = read("/proc/meminfo");
  constexpr std::string_view kKey = "MemTotal:";
  if (!text.ok()) return 0;
  const size_t key = text->find(kKey);
  if (key == std::string::npos) return 0;
  const std::string value = Trim(std::string_view(*text).substr(key + kKey.size(), 40));
  uint64_t kilobytes = 0;
  std::from_chars(value.data(), value.data() + value.size(), kilobytes);
  return kilobytes <= UINT64_MAX / 1024 ? kilobytes * 1024 : 0;
}

void ReadTopologyFacts(const numa::ReadFile& read, HostFactsReport& report) {
  const Result<numa::Topology> topology = numa::ReadTopology(read);
  if (!topology.ok()) {
    report.problems.push_back(topology.status().message());
    return;
  }
  v1::HostFacts& facts = report.facts;
  facts.set_online_cpus(static_cast<uint32_t>(topology->cpus().size()));
  for (const numa::Node& node : topology->nodes()) {
    v1::NumaNode* fact = facts.add_nodes();
    fact->set_id(node.id);
    fact->set_cpus(numa::FormatNumberList(node.cpus));
    fact->set_memory_bytes(static_cast<uint64_t>(node.memory_bytes));
    for (const int distance : node.distances) facts.add_distances(static_cast<uint32_t>(distance));
  }
}

struct FileFact {
  const char* name;
  const char* path;
  bool is_choice = false;  // "[always] madvise never"
};

// What may differ between two runs on one host and explain a change. Absent where the kernel or the
// container has no such file.
constexpr FileFact kFileFacts[] = {
    {"aslr", "/proc/sys/kernel/randomize_va_space"},
    {"clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
    {"governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
    {"ksm", "/sys/kernel/mm/ksm/run"},
    {"numa_balancing", "/proc/sys/kernel/numa_balancing"},
    {"pipe-max-size", "/proc/sys/fs/pipe-max-size"},
    {"pipe-user-pages-hard", "/proc/sys/fs/pipe-user-pages-hard"},
    {"pipe-user-pages-soft", "/proc/sys/fs/pipe-user-pages-soft"},
    {"smt", "/sys/devices/system/cpu/smt/control"},
    {"swappiness", "/proc/sys/vm/swappiness"},
    {"taint", "/proc/sys/kernel/tainted"},
    {"thp", "/sys/kernel/mm/transparent_hugepage/enabled", true},
    {"thp-defrag", "/sys/kernel/mm/transparent_hugepage/defrag", true},
    {"zone_reclaim_mode", "/proc/sys/vm/zone_reclaim_mode"},
};

}  // namespace

HostFactsReport ReadHostFacts(const numa::ReadFile& read, const std::string& machine,
                              uint64_t page_size_bytes) {
  HostFactsReport report;
  v1::HostFacts& facts = report.facts;
  facts.set_machine(AsFact(machine));
  facts.set_page_size_bytes(page_size_bytes);
  if (const Result<std::string> release = read("/proc/sys/kernel/osrelease"); release.ok()) {
    facts.set_kernel_release(AsFact(*release));
  } else {
    report.problems.push_back(release.status().message());
  }
  const Result<std::string> cpuinfo = read("/proc/cpuinfo");
  if (!cpuinfo.ok()) report.problems.push_back(cpuinfo.status().message());
  const std::string cpuinfo_text = cpuinfo.ok() ? *cpuinfo : "";
  facts.set_cpu_model(ReadCpuModel(read, cpuinfo_text));
  facts.set_hypervisor(ReadHypervisor(read, cpuinfo_text));
  facts.set_memory_bytes(ReadMemoryBytes(read));
  ReadTopologyFacts(read, report);
  auto& more = *facts.mutable_more();
  if (const auto microcode = CpuInfo(cpuinfo_text, "microcode")) more["microcode"] = *microcode;
  for (const FileFact& fact : kFileFacts) {
    const Result<std::string> text = read(fact.path);
    if (!text.ok()) continue;
    const std::string value = fact.is_choice ? Chosen(AsFact(*text)) : AsFact(*text);
    if (!value.empty()) more[fact.name] = value;
  }
  return report;
}

HostFactsReport ReadHostFacts() {
  utsname names{};
  ::uname(&names);
  return ReadHostFacts(numa::HostFiles(), names.machine,
                       static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
}

std::string HostNameFrom(std::string_view node_name) {
  std::string name;
  for (const char c : node_name.substr(0, kMaxNameBytes)) {
    const bool is_legal =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
    name += is_legal ? c : '-';
  }
  const auto is_end = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; };
  while (!name.empty() && is_end(name.back())) name.pop_back();
  while (!name.empty() && is_end(name.front())) name.erase(0, 1);
  return name.empty() ? "host" : name;
}

std::string DefaultHostName() {
  utsname names{};
  ::uname(&names);
  return HostNameFrom(names.nodename);
}

}  // namespace pipeyard::host
