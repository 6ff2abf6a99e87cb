#include "workloads/commands/presets.h"

#include <array>
#include <cassert>
#include <map>

#include "workloads/commands/command_file.h"

namespace pipeyard::commands {
namespace {

struct Preset {
  std::string_view name;
  std::string_view text;
};

// Sorted by name. Parameters that a workload of our own has too bear its names.
constexpr std::array<Preset, 5> kPresets{{
    {"hackbench", R"yaml(hackbench:
  description: scheduler and pipes, many to many (rt-tests); the pattern of workload messaging
  package: rt-tests
  argv: [hackbench, "{ipc}", "{workers}", --groups, "{groups}", --fds, "{fds}", --loops, "{loops}",
         --datasize, "{message_bytes}"]
  parameters:
    groups: { type: int, min: 1, max: 1024, default: 10 }
    fds: { type: int, min: 1, max: 1024, default: 20 }
    loops: { type: int, min: 1, max: 1000000000, default: 100 }
    message_bytes: { type: bytes, min: 1B, max: 64MiB, default: 100B }
    workers: { type: choice, values: { processes: --process, threads: --threads }, default: processes }
    ipc: { type: choice, values: { pipe: --pipe, socket: "" }, default: pipe }
  read:
    time: { regex: '^Time: ([0-9.]+)$', from: stdout, unit: s, better: lower }
  repeat_safe: true
)yaml"},
    {"perf-bench-sched-messaging", R"yaml(perf-bench-sched-messaging:
  description: perf bench sched messaging, hackbench's pattern with 20 fds and 100 bytes
  package: linux-perf
  argv: [perf, bench, sched, messaging, "{ipc}", "{workers}", -g, "{groups}", -l, "{loops}"]
  parameters:
    groups: { type: int, min: 1, max: 1024, default: 10 }
    loops: { type: int, min: 1, max: 1000000000, default: 100 }
    workers: { type: choice, values: { processes: "", threads: -t }, default: processes }
    ipc: { type: choice, values: { pipe: -p, socket: "" }, default: pipe }
  read:
    time: { regex: '^ *Total time: ([0-9.]+) \[sec\]$', from: stdout, unit: s, better: lower }
  repeat_safe: true
)yaml"},
    {"perf-bench-sched-pipe", R"yaml(perf-bench-sched-pipe:
  description: perf bench sched pipe, two tasks that pass four bytes to and fro
  package: linux-perf
  argv: [perf, bench, sched, pipe, "{workers}", -l, "{loops}"]
  parameters:
    loops: { type: int, min: 1, max: 1000000000, default: 1000000 }
    workers: { type: choice, values: { processes: "", threads: -T }, default: processes }
  read:
    time: { regex: '^ *Total time: ([0-9.]+) \[sec\]$', from: stdout, unit: s, better: lower }
    time_per_op: { regex: '^ *([0-9.]+) usecs/op$', from: stdout, unit: us, better: lower }
    op_rate: { regex: '^ *([0-9.]+) ops/sec$', from: stdout, unit: 1/s, better: higher }
  repeat_safe: true
)yaml"},
    {"pipe_bench", R"yaml(pipe_bench:
  description: the kernel's selftest pipe_bench; the pattern of workload transfer
  argv: [pipe_bench, -w, "{writers}", -r, "{readers}", -s, "{message_bytes}", -d, "{seconds}",
         -p, "{pipe_bytes}"]
  parameters:
    writers: { type: int, min: 1, max: 1024, default: 1 }
    readers: { type: int, min: 1, max: 1024, default: 1 }
    message_bytes: { type: bytes, min: 4KiB, max: 64MiB, default: 64KiB }
    seconds: { type: int, min: 1, max: 86400, default: 3 }
    pipe_bytes: { type: bytes, min: 4KiB, max: 2GiB, default: 1MiB }
  read:
    write_rate: { regex: '^writes: total=[0-9]+ rate=([0-9.]+)/s$', from: stdout, unit: 1/s, better: higher }
    throughput: { regex: '^throughput_MBps: ([0-9.]+)$', from: stdout, unit: MiB/s, better: higher }
    latency_mean: { regex: '^lat_avg_ns: ([0-9]+)$', from: stdout, unit: ns, better: lower }
    latency_p50_upper: { regex: '^lat_p50_ns_upper: ([0-9]+)$', from: stdout, unit: ns, better: lower }
    latency_p99_upper: { regex: '^lat_p99_ns_upper: ([0-9]+)$', from: stdout, unit: ns, better: lower }
    latency_max: { regex: '^lat_max_ns: ([0-9]+)$', from: stdout, unit: ns, better: lower }
  repeat_safe: true
)yaml"},
    {"stress-ng-pipe", R"yaml(stress-ng-pipe:
  description: stress-ng's stressor pipe, a writer and a reader of a pipe in each instance
  package: stress-ng
  argv: [stress-ng, --pipe, "{instances}", --timeout, "{seconds}s", --metrics, --yaml, "{output}"]
  parameters:
    instances: { type: int, min: 1, max: 4096, default: 1 }
    seconds: { type: int, min: 1, max: 86400, default: 3 }
  read:
    bogo_op_rate: { yaml: '.metrics[0].bogo-ops-per-second-real-time', from: file, unit: 1/s, better: higher }
    write_rate: { yaml: '.metrics[0].mb-per-sec-pipe-write-rate', from: file, unit: MiB/s, better: higher }
  repeat_safe: true
)yaml"},
}};

std::map<std::string_view, Command>* ReadPresets() {
  auto* commands = new std::map<std::string_view, Command>;
  for (const Preset& preset : kPresets) {
    FileReading reading = ReadCommandFile(preset.text, preset.name);
    assert(reading.command.has_value());
    if (reading.command) commands->emplace(preset.name, *std::move(reading.command));
  }
  return commands;
}

}  // namespace

std::vector<std::string_view> PresetNames() {
  std::vector<std::string_view> names;
  for (const Preset& preset : kPresets) names.push_back(preset.name);
  return names;
}

const Command* FindPreset(std::string_view name) {
  static const std::map<std::string_view, Command>* const kCommands = ReadPresets();
  const auto found = kCommands->find(name);
  return found == kCommands->end() ? nullptr : &found->second;
}

std::string_view PresetText(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset.text;
  }
  return {};
}

}  // namespace pipeyard::commands
