#include "workloads/load/kernel_aging.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/units.h"
#include "workloads/load/file_limit.h"
#include "workloads/load/result_fields.h"
#include "workloads/numa/numa_kernel.h"

namespace pipeyard::load {
namespace {

// More slabs than the kernel keeps for their own node (min_partial, 10 at most), of 32 objects.
constexpr uint64_t kObjectsOfTheGate = 14 * 32;
// Of an empty pipe: info, ring, inode, two files.
constexpr int64_t kPipeBytes = 4096;
constexpr int kPatienceMs = 60'000;

// What the process says of itself once.
struct Report {
  int error = 0;
  enum class Step { kNone, kAffinity, kPolicy, kPipe, kResize } step = Step::kNone;
};

int64_t PageBytes() { return ::sysconf(_SC_PAGESIZE); }

// CPUs of the node, whatever this process's own: placement.cpus may keep the load on another node.
Result<cpu_set_t> CpusOf(numa::NodeId id, const numa::Topology& host) {
  const std::string who = fmt::format("allocator aged:{}", id);
  const Status memory = host.CheckMemoryMask(numa::NodeMask::Of({id}));
  if (!memory.ok()) return memory.WithContext(who);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const numa::CpuId cpu : host.cpus()) {
    if (cpu < CPU_SETSIZE && host.NodeOfCpu(cpu) == id) CPU_SET(static_cast<size_t>(cpu), &cpus);
  }
  if (CPU_COUNT(&cpus) != 0) return cpus;
  return InvalidArgument(
      fmt::format("{}: node {} has no CPU, and pipes are made where their maker runs", who, id));
}

// Pipes whose ring has `slots`, every second of them closed: each slab of infos and of rings keeps
// one of each two neighbours.
Report MakeHalf(uint64_t num_pipes, uint64_t slots) {
  std::vector<std::pair<int, int>> to_close;
  for (uint64_t i = 0; i < num_pipes; ++i) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {errno, Report::Step::kPipe};
    const int bytes = static_cast<int>(slots) * static_cast<int>(PageBytes());
    if (::fcntl(ends[1], F_GETPIPE_SZ) != bytes && ::fcntl(ends[1], F_SETPIPE_SZ, bytes) < 0) {
      return {errno, Report::Step::kResize};
    }
    if (i % 2 != 0) to_close.emplace_back(ends[0], ends[1]);
  }
  for (const auto& [read, write] : to_close) {
    ::close(read);
    ::close(write);
  }
  return {};
}

Report Age(const AgingRequest& request, uint64_t num_pipes, const cpu_set_t& cpus) {
  if (::sched_setaffinity(0, sizeof(cpus), &cpus) != 0) return {errno, Report::Step::kAffinity};
  // Nor the memory policy of the load, which may forbid the node.
  const int error = numa::SystemNumaKernel().SetTaskPolicy(numa::PolicyMode::kDefault, {});
  if (error != 0) return {error, Report::Step::kPolicy};
  Report report;
  for (const uint64_t slots : request.ring_slots) {
    report = MakeHalf(num_pipes, slots);
    if (report.error != 0) break;
  }
  return report;
}

Judgement JudgeReport(const Report& report, int64_t num_pipes) {
  switch (report.step) {
    case Report::Step::kNone:
      return {};
    case Report::Step::kAffinity:
      return NotApplicable("no_such_node",
                           "aging: it may not run there: " + ErrnoText(report.error));
    case Report::Step::kPolicy:
      break;
    case Report::Step::kPipe:
      if (report.error == EMFILE || report.error == ENFILE) {
        return NotApplicable("file_limit",
                             fmt::format("aging: {} pipes are needed: {}; fs.file-max and "
                                         "fs.pipe-user-pages-hard limit them",
                                         num_pipes, ErrnoText(report.error)));
      }
      break;
    case Report::Step::kResize:
      if (report.error == EPERM) {
        return NotApplicable("pipe_size_limit",
                             fmt::format("aging: {} pipes exceed fs.pipe-user-pages-soft or "
                                         "fs.pipe-user-pages-hard, or one of them "
                                         "fs.pipe-max-size",
                                         num_pipes));
      }
      break;
  }
  return Failed("aging_failed", "aging: " + ErrnoText(report.error));
}

// False where the process said nothing in time, or ended.
bool ReadReport(int end, Report& report) {
  pollfd polled = {.fd = end, .events = POLLIN, .revents = 0};
  const MonotonicTime deadline = SystemClock().Now() + Milliseconds(kPatienceMs);
  while (true) {
    const Nanos left = deadline - SystemClock().Now();
    if (left <= Nanos(0)) return false;
    const int ready = ::poll(&polled, 1, static_cast<int>(left.count() / 1'000'000 + 1));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    // Smaller than PIPE_BUF: whole or not at all.
    return ::read(end, &report, sizeof(report)) == static_cast<ssize_t>(sizeof(report));
  }
}

}  // namespace

Judgement KernelAging::Start(const AgingRequest& request, const numa::Topology& host,
                             std::vector<MemoryLimit>& memory,
                             std::unique_ptr<KernelAging>& aging) {
  const Result<cpu_set_t> cpus = CpusOf(request.node, host);
  if (!cpus.ok()) return NotApplicable("no_such_node", cpus.status().message());
  const uint64_t each = 2 * request.num_free + kObjectsOfTheGate;
  const auto all = static_cast<int64_t>(each * request.ring_slots.size());
  if (Judgement allowed = RaiseFileLimit(2 * all); !allowed.ok()) return allowed;
  if (Judgement fits = TakeMemory(all * kPipeBytes, fmt::format("{} pipes of aging", all), memory);
      !fits.ok()) {
    return fits;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Failed("aging_failed", ErrnoStatus("pipe", errno).message());
  }
  std::unique_ptr<KernelAging> started(new KernelAging(all - all / 2));
  const Status forked =
      started->process_.Start("aging", [request, each, ends, cpus = *cpus]() noexcept {
        ::close(ends[0]);
        const Report report = Age(request, each, cpus);
        static_cast<void>(!::write(ends[1], &report, sizeof(report)));
        ::close(ends[1]);
        // Until it is killed.
        while (report.error == 0) ::pause();
      });
  ::close(ends[1]);
  Report report;
  const bool is_told = forked.ok() && ReadReport(ends[0], report);
  ::close(ends[0]);
  if (!forked.ok()) return Failed("no_process", forked.message());
  if (!is_told) return Failed("aging_failed", "aging: its process did not get ready");
  if (Judgement judged = JudgeReport(report, all); !judged.ok()) return judged;
  aging = std::move(started);
  return {};
}

Judgement KernelAging::StartFor(const settings::Variant& variant, uint64_t num_pipes,
                                uint64_t num_makers, std::vector<MemoryLimit>& memory,
                                std::unique_ptr<KernelAging>& aging) {
  const Result<std::optional<AgingRequest>> request =
      AgingRequestOf(variant, num_pipes, num_makers);
  if (!request.ok()) return Failed("not_supported", request.status().message());
  if (!request->has_value()) return {};
  const Result<numa::Topology> host = numa::ReadTopology(numa::HostFiles());
  if (!host.ok()) return Failed("aging_failed", host.status().message());
  return Start(**request, *host, memory, aging);
}

void KernelAging::Describe(v1::WorkerResult& result) const {
  FillCounters({{"aged_pipes", "count", num_held_}}, result);
}

Judgement KernelAging::Conclude() {
  const Judgement checked = process_.Check();
  if (checked.ok()) return {};
  return Void("aging_lost", "allocator: " + checked.reason_text);
}

}  // namespace pipeyard::load
