#include "controller/cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace pipeyard::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::RunProgress Progress(const std::string& state, uint32_t done, uint32_t trials) {
  v1::RunProgress progress;
  progress.mutable_summary()->set_run_id("019b76da-a800-7000-8000-000000000000");
  progress.mutable_summary()->set_state(state);
  progress.mutable_summary()->set_trials(trials);
  progress.mutable_summary()->set_trials_done(done);
  return progress;
}

// What a display writes to a file that is no terminal.
class Written {
 public:
  Written() : file_(::open_memstream(&text_, &size_)) {}
  ~Written() {
    std::fclose(file_);
    std::free(text_);
  }
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return std::string(text_, size_);
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_;
};

TEST(Progress, LineTellsStateShareAndWhatRuns) {
  v1::RunProgress progress = Progress("running", 9, 36);
  progress.set_expected_remaining_ns(Seconds(27).count());
  v1::RunProgress::HostProgress* host = progress.add_hosts();
  host->set_host("host1");
  host->set_now("writers=1 3/6");
  host->set_failed(2);

  EXPECT_EQ(ProgressDisplay::Line(progress, Seconds(9), 0),
            "run 019b76da-a800 running [#####...............] 9/36 trials, 9s, about 27s left; "
            "host1: writers=1 3/6, 2 not ok");
}

TEST(Progress, ANarrowTerminalLosesTheBarBeforeTheTimes) {
  v1::RunProgress progress = Progress("running", 9, 36);
  progress.set_expected_remaining_ns(Seconds(27).count());

  EXPECT_EQ(ProgressDisplay::Line(progress, Seconds(9), 60),
            "run 019b76da-a800 running 9/36, 9s, 27s left");
}

TEST(Progress, HostsShareTheRestOfTheLine) {
  v1::RunProgress progress = Progress("running", 9, 36);
  for (const char* name : {"host1", "host2"}) {
    v1::RunProgress::HostProgress* host = progress.add_hosts();
    host->set_host(name);
    host->set_now("target=engine;message_bytes=64KiB;engine.page_cache=two-page;writers=1 3/6");
  }

  const std::string line = ProgressDisplay::Line(progress, Seconds(9), 140);

  EXPECT_LE(line.size(), 140u);
  EXPECT_THAT(line, HasSubstr("; host1: target=eng..age;writers=1 3/6; host2: target=eng"));
}

TEST(Progress, PaceCountsWhereThePlanIsTooHopeful) {
  Written written;
  FakeClock clock;
  {
    ProgressDisplay display(
        written.file(), true, [] { return 120; }, clock);
    for (uint32_t done : {0, 4}) {
      v1::RunProgress progress = Progress("running", done, 10);
      progress.set_expected_remaining_ns(Seconds(1).count());
      progress.add_hosts()->set_done(done);
      display.Show(progress);
      clock.Advance(Seconds(20));
    }
  }

  EXPECT_THAT(written.text(), HasSubstr("0/10 trials, 0s, about 1s left"));
  EXPECT_THAT(written.text(), HasSubstr("4/10 trials, 20s, about 30s left"));
}

TEST(Progress, LineIsCutToTheTerminal) {
  EXPECT_EQ(ProgressDisplay::Line(Progress("running", 1, 2), Seconds(0), 20).size(), 20u);
}

TEST(Progress, RunWithoutTrialsIsNoDivisionByZero) {
  EXPECT_THAT(ProgressDisplay::Line(Progress("queued", 0, 0), Seconds(0), 0),
              HasSubstr("0/0 trials"));
}

TEST(Progress, MoreDoneThanPlannedDoesNotOverrunTheBar) {
  EXPECT_THAT(ProgressDisplay::Line(Progress("running", 9, 4), Seconds(0), 0),
              HasSubstr("[####################] 4/4"));
}

TEST(Progress, WithoutATerminalALineIsWrittenAtEachTenthOnly) {
  Written written;
  FakeClock clock;
  {
    ProgressDisplay display(
        written.file(), false, [] { return 80; }, clock);
    for (uint32_t done = 0; done <= 100; ++done) display.Show(Progress("running", done, 100));
    display.Show(Progress("finished", 100, 100));
  }

  const std::string text = written.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 12);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Progress, OnATerminalOneLineIsRedrawnAndEnded) {
  Written written;
  FakeClock clock;
  {
    ProgressDisplay display(
        written.file(), true, [] { return 80; }, clock);
    display.Show(Progress("running", 1, 2));
    display.Show(Progress("finished", 2, 2));
  }

  const std::string text = written.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 2);
}

}  // namespace
}  // namespace pipeyard::cli
