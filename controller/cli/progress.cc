#include "controller/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>

namespace pipeyard::cli {
namespace {

constexpr int kBarCells = 20;
constexpr size_t kShortIdCharacters =
    13;  // up to the UUID's second group: unique within a millisecond

// "1h 02m", "3m 20s", "9s".
std::string Rough(Nanos time) {
  const int64_t seconds = std::max<int64_t>(0, (time.count() + 500'000'000) / 1'000'000'000);
  if (seconds >= 3600) return fmt::format("{}h {:02}m", seconds / 3600, seconds / 60 % 60);
  if (seconds >= 60) return fmt::format("{}m {:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}s", seconds);
}

bool IsTerminal(const std::string& state) {
  return state == "finished" || state == "canceled" || state == "failed";
}

}  // namespace

ProgressDisplay::ProgressDisplay(std::FILE* out, bool redraws, int columns, const Clock& clock)
    : out_(out), redraws_(redraws), columns_(columns), clock_(clock), start_(clock.Now()) {}

ProgressDisplay::~ProgressDisplay() { Finish(); }

std::string ProgressDisplay::Line(const v1::RunProgress& progress, Nanos elapsed, int columns) {
  const v1::RunSummary& run = progress.summary();
  const uint32_t total = run.trials();
  const uint32_t done = std::min(run.trials_done(), total);
  const int filled =
      total == 0 ? 0 : static_cast<int>(static_cast<uint64_t>(done) * kBarCells / total);
  std::string line = fmt::format("run {} {} [{:#<{}}{:.<{}}] {}/{} trials, {}",
                                 run.run_id().substr(0, kShortIdCharacters), run.state(), "",
                                 filled, "", kBarCells - filled, done, total, Rough(elapsed));
  if (!IsTerminal(run.state()) && progress.expected_remaining_ns() > 0) {
    line += fmt::format(", about {} left", Rough(Nanos(progress.expected_remaining_ns())));
  }
  for (const v1::RunProgress::HostProgress& host : progress.hosts()) {
    if (host.failed() > 0) line += fmt::format("; {}: {} failed", host.host(), host.failed());
    if (!IsTerminal(run.state()) && !host.now().empty())
      line += fmt::format("; {}: {}", host.host(), host.now());
  }
  if (columns > 0 && line.size() > static_cast<size_t>(columns))
    line.resize(static_cast<size_t>(columns));
  return line;
}

void ProgressDisplay::Show(const v1::RunProgress& progress) {
  const Nanos elapsed = clock_.Now() - start_;
  if (redraws_) {
    // Column 1, the line, clear to its end; one column is left so that no terminal wraps.
    fmt::print(out_, "\r{}\x1b[K", Line(progress, elapsed, columns_ - 1));
    std::fflush(out_);
    is_line_open_ = true;
    return;
  }
  const v1::RunSummary& run = progress.summary();
  const int tenth =
      run.trials() == 0
          ? 0
          : static_cast<int>(static_cast<uint64_t>(run.trials_done()) * 10 / run.trials());
  if (tenth == last_tenth_ && run.state() == last_state_) return;
  last_tenth_ = tenth;
  last_state_ = run.state();
  fmt::print(out_, "{}\n", Line(progress, elapsed, 0));
  std::fflush(out_);
}

void ProgressDisplay::Finish() {
  if (!is_line_open_) return;
  fmt::print(out_, "\n");
  std::fflush(out_);
  is_line_open_ = false;
}

int TerminalColumns(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace pipeyard::cli
