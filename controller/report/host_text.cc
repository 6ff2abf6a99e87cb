#include "controller/report/host_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "controller/report/table.h"
#include "controller/report/words.h"

namespace pipeyard::report {
namespace {

// For people: "15.6 GiB".
std::string MemoryWords(uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1024.0 * 1024.0);
  if (mib >= 1024) return fmt::format("{:.1f} GiB", mib / 1024);
  return fmt::format("{:.0f} MiB", mib);
}

Tone StateTone(const v1::Host& host) {
  return host.state() == "connected" ? Tone::kGood : Tone::kUnsure;
}

template <typename Map>
std::string PairWords(const Map& pairs) {
  const std::map<std::string, std::string> sorted(pairs.begin(), pairs.end());
  std::string text;
  for (const auto& [name, value] : sorted) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  }
  return Printable(text);
}

// One box a node, side by side four in a row:
//   +-- node 0 ------+  +-- node 1 ------+
//   | cpus 0-3       |  | no cpus        |
//   | 8.0 GiB        |  | 16.0 GiB       |
//   +----------------+  +----------------+
std::string NodePicture(const v1::HostFacts& facts) {
  constexpr int kPerRow = 4;
  std::string picture;
  for (int first = 0; first < facts.nodes_size(); first += kPerRow) {
    std::string top, cpus, memory, bottom;
    for (int i = first; i < std::min(first + kPerRow, facts.nodes_size()); ++i) {
      const v1::NumaNode& node = facts.nodes(i);
      const std::string title = fmt::format(" node {} ", node.id());
      const std::string cpu_line =
          node.cpus().empty() ? "no cpus" : "cpus " + Printable(node.cpus());
      const std::string memory_line =
          node.memory_bytes() == 0 ? "no memory" : MemoryWords(node.memory_bytes());
      const size_t width =
          std::max({title.size() + 4, NumColumns(cpu_line) + 2, memory_line.size() + 2});
      top += fmt::format("  +--{}{}+", title, std::string(width - title.size() - 2, '-'));
      cpus +=
          fmt::format("  | {}{}|", cpu_line, std::string(width - 1 - NumColumns(cpu_line), ' '));
      memory += fmt::format("  | {:<{}}|", memory_line, width - 1);
      bottom += fmt::format("  +{}+", std::string(width, '-'));
    }
    picture += top + "\n" + cpus + "\n" + memory + "\n" + bottom + "\n";
  }
  return picture;
}

std::string DistanceTable(const v1::HostFacts& facts) {
  const int n = facts.nodes_size();
  if (n < 2 || facts.distances_size() != n * n) return "";
  std::vector<Column> columns{{"distance"}};
  for (const v1::NumaNode& node : facts.nodes()) {
    columns.push_back({std::to_string(node.id()), Align::kRight});
  }
  Table table(columns, "  ");
  for (int row = 0; row < n; ++row) {
    std::vector<TableCell> cells{std::to_string(facts.nodes(row).id())};
    for (int column = 0; column < n; ++column) {
      cells.emplace_back(std::to_string(facts.distances(row * n + column)));
    }
    table.Row(std::move(cells));
  }
  return table.Render(false);
}

}  // namespace

std::string HostListText(const v1::ListHostsResponse& hosts, bool use_colour) {
  if (hosts.hosts().empty()) return "no hosts: start pipeyard-agent on a test machine\n";
  Table table({{"host"},
               {"state"},
               {"cpus", Align::kRight},
               {"nodes", Align::kRight},
               {"memory", Align::kRight},
               {"kernel"},
               {"cpu model"},
               {"running"},
               {"last seen"},
               {"labels"}});
  for (const v1::Host& host : hosts.hosts()) {
    const v1::HostFacts& facts = host.facts();
    table.Row({Printable(host.name()), TableCell(Printable(host.state()), StateTone(host)),
               std::to_string(facts.online_cpus()), std::to_string(facts.nodes_size()),
               MemoryWords(facts.memory_bytes()), Printable(facts.kernel_release()),
               Printable(facts.cpu_model()), Printable(host.running()),
               UtcWords(host.last_seen_utc_ns()), PairWords(host.labels())});
  }
  return table.Render(use_colour);
}

std::string HostText(const v1::Host& host, bool use_colour) {
  const v1::HostFacts& facts = host.facts();
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<12} {}\n", name, value);
  };
  line("host", Printable(host.name()));
  line("id", Printable(host.host_id()));
  line("state", Paint(Printable(host.state()), StateTone(host), use_colour));
  line("running", Printable(host.running()));
  line("boot", Printable(host.boot_id()));
  line("first seen", UtcWords(host.first_seen_utc_ns()));
  line("last seen", UtcWords(host.last_seen_utc_ns()));
  line("agent", Printable(host.agent_version()));
  line("labels", PairWords(host.labels()));
  line("kernel", Printable(facts.kernel_release()));
  line("machine", Printable(facts.machine()));
  line("cpu", Printable(facts.cpu_model()));
  line("cpus", fmt::format("{} online", facts.online_cpus()));
  line("memory", fmt::format("{}, pages of {} B", MemoryWords(facts.memory_bytes()),
                             facts.page_size_bytes()));
  line("hypervisor", Printable(facts.hypervisor()));
  std::string capabilities;
  for (const std::string& capability : host.capabilities()) {
    capabilities += (capabilities.empty() ? "" : ", ") + Printable(capability);
  }
  line("can do", capabilities);
  const std::map<std::string, std::string> more(facts.more().begin(), facts.more().end());
  if (!more.empty()) {
    text += "\nmore facts\n";
    Table table({{"name"}, {"value"}}, "  ");
    for (const auto& [name, value] : more) table.Row({Printable(name), Printable(value)});
    text += table.Render(use_colour);
  }
  text += "\nnodes\n" + NodePicture(facts) + DistanceTable(facts);
  return text;
}

}  // namespace pipeyard::report
