#include "controller/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace pipeyard::cli {
namespace {

constexpr int kBarCells = 20;
// Up to the UUID's second group: unique within a millisecond.
constexpr size_t kShortIdCharacters = 13;
// A host's part of a line is not cut below this, nor longer where the line has no end.
constexpr size_t kLeastHostCharacters = 24;
constexpr size_t kMostHostCharacters = 72;
// Ends of trials after which their pace says more than the plan.
constexpr uint32_t kTrialsForPace = 3;

// "1h 02m", "3m 20s", "9s".
std::string Rough(Nanos time) {
  const int64_t seconds = std::max<int64_t>(0, (time.count() + 500'000'000) / 1'000'000'000);
  if (seconds >= 3600) return fmt::format("{}h {:02}m", seconds / 3600, seconds / 60 % 60);
  if (seconds >= 60) return fmt::format("{}m {:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}s", seconds);
}

// The end of a variant's text is what varies fastest, so the middle goes.
std::string Shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  const size_t head = (most - 2) / 2;
  return text.substr(0, head) + ".." + text.substr(text.size() - (most - 2 - head));
}

uint32_t Ended(const v1::RunProgress& progress) {
  uint32_t ended = 0;
  for (const v1::RunProgress::HostProgress& host : progress.hosts()) {
    ended += host.done() + host.failed();
  }
  return ended;
}

bool IsTerminal(const std::string& state) {
  return state == "finished" || state == "canceled" || state == "failed";
}

}  // namespace

ProgressDisplay::ProgressDisplay(std::FILE* out, bool redraws, std::function<int()> columns,
                                 const Clock& clock)
    : out_(out),
      redraws_(redraws),
      columns_(std::move(columns)),
      clock_(clock),
      start_(clock.Now()) {}

ProgressDisplay::~ProgressDisplay() { Finish(); }

std::string ProgressDisplay::Line(const v1::RunProgress& progress, Nanos elapsed, int columns) {
  const v1::RunSummary& run = progress.summary();
  const uint32_t total = run.trials();
  const uint32_t done = std::min(run.trials_done(), total);
  const int filled =
      total == 0 ? 0 : static_cast<int>(static_cast<uint64_t>(done) * kBarCells / total);
  const bool is_active = !IsTerminal(run.state());
  const std::string id = run.run_id().substr(0, kShortIdCharacters);
  const std::string bar = fmt::format("[{:#<{}}{:.<{}}]", "", filled, "", kBarCells - filled);
  const std::string left = is_active && progress.expected_remaining_ns() > 0
                               ? Rough(Nanos(progress.expected_remaining_ns()))
                               : "";
  const auto limit = static_cast<size_t>(columns);
  std::string line =
      fmt::format("run {} {} {} {}/{} trials, {}{}", id, run.state(), bar, done, total,
                  Rough(elapsed), left.empty() ? "" : fmt::format(", about {} left", left));
  if (limit > 0 && line.size() > limit) {
    line = fmt::format("run {} {} {}/{}, {}{}", id, run.state(), done, total, Rough(elapsed),
                       left.empty() ? "" : fmt::format(", {} left", left));
  }

  std::vector<std::string> hosts;
  for (const v1::RunProgress::HostProgress& host : progress.hosts()) {
    std::string text = is_active ? host.now() : "";
    if (host.failed() > 0) {
      text += fmt::format("{}{} not ok", text.empty() ? "" : ", ", host.failed());
    }
    if (!text.empty()) hosts.push_back(fmt::format("{}: {}", host.host(), text));
  }
  size_t most = kMostHostCharacters;
  if (limit > 0 && !hosts.empty()) {
    const size_t rest = limit > line.size() ? limit - line.size() : 0;
    const size_t each = rest / hosts.size();
    most = std::clamp(each > 2 ? each - 2 : 0, kLeastHostCharacters, kMostHostCharacters);
  }
  for (const std::string& host : hosts) {
    const std::string text = Shortened(host, most);
    if (limit > 0 && line.size() + 2 + text.size() > limit) break;
    line += "; " + text;
  }
  if (limit > 0 && line.size() > limit) line.resize(limit);
  return line;
}

// The plan knows neither what a trial costs beside its workload nor that agents of one machine
// take turns; the pace so far does.
Nanos ProgressDisplay::Remaining(const v1::RunProgress& progress, Nanos elapsed) {
  const uint32_t ended = Ended(progress);
  if (!first_ended_) first_ended_ = ended;
  const Nanos planned(progress.expected_remaining_ns());
  if (ended < *first_ended_ + kTrialsForPace || progress.summary().trials() <= ended) {
    return planned;
  }
  const Nanos each = elapsed / (ended - *first_ended_);
  return std::max(planned, each * (progress.summary().trials() - ended));
}

void ProgressDisplay::Show(const v1::RunProgress& news) {
  const Nanos elapsed = clock_.Now() - start_;
  v1::RunProgress progress = news;
  progress.set_expected_remaining_ns(Remaining(news, elapsed).count());
  if (redraws_) {
    // Column 1, the line, clear to its end; one column is left so that no terminal wraps. Asked for
    // anew each time: people resize windows.
    fmt::print(out_, "\r{}\x1b[K", Line(progress, elapsed, columns_() - 1));
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
