#include "workloads/pipe/differential/comparison.h"

#include <unistd.h>

#include <algorithm>

#include "workloads/pipe/differential/ballast.h"
#include "workloads/pipe/differential/kernel_system.h"
#include "workloads/pipe/differential/privilege.h"
#include "workloads/pipe/differential/shrink.h"

namespace pipeyard::pipe::differential {
namespace {

// Programs between two looks at the subject's accounts, which cost as much as some programs.
constexpr uint64_t kProgramsPerCheck = 128;

uint32_t PageBytes() { return static_cast<uint32_t>(::sysconf(_SC_PAGESIZE)); }

// In the search rarely, for speed; in a shrunk case always, so that what it shows does not hang on
// how many operations stand before.
constexpr uint32_t kRarely = 4;
constexpr uint32_t kAlways = 1;
constexpr int kTries = 20'000;  // of short programs; some 20 us each

CheckOptions ChecksFor(const RunSettings& settings, uint32_t interval) {
  return {.has_polls = settings.has_polls,
          .interval = interval,
          .page_bytes = PageBytes(),
          .has_write_watches = settings.wakeup == Wakeup::kWasFull};
}

// What a fresh subject differs in, the ballast being held; empty: nothing.
std::string RunFresh(const Program& program, const RunSettings& settings,
                     const SubjectMaker& make_subject, uint32_t interval) {
  Result<std::unique_ptr<Subject>> subject = make_subject(settings);
  if (!subject.ok()) return "make the subject: " + subject.status().ToString();
  KernelSystem kernel;
  SequentialRun run(kernel, (*subject)->system(), ChecksFor(settings, interval));
  if (const std::optional<Divergence> found = run.Run(program.operations)) return found->text;
  const Status status = (*subject)->CheckAtRest();
  return status.ok() ? "" : "at rest: " + status.ToString();
}

// `text` is what the whole program showed on a subject that had run others before.
void Tell(const Program& program, const RunSettings& settings, const GeneratorOptions& generator,
          const SubjectMaker& make_subject, uint64_t seed, const std::string& text,
          ComparisonReport& report) {
  // One subject serves all tries: each leaves it at rest, and what is found is run afresh below.
  KernelSystem kernel;
  Result<std::unique_ptr<Subject>> subject = make_subject(settings);
  std::unique_ptr<SequentialRun> run;
  uint32_t interval = kAlways;
  const auto choose = [&] {
    run = std::make_unique<SequentialRun>(kernel, (*subject)->system(),
                                          ChecksFor(settings, interval));
  };
  if (subject.ok()) choose();
  const auto fails = [&](const std::vector<Operation>& operations) {
    return run != nullptr && run->Run(operations).has_value();
  };
  Program shown = program;
  std::string shown_text;
  std::string origin = "# program " + std::to_string(report.num_programs) +
                       " of PIPEYARD_SEED=" + std::to_string(seed);
  if (subject.ok() && !fails(program.operations)) {
    interval = kRarely;
    choose();
  }
  if (fails(program.operations)) {
    shown.operations =
        ShrinkFurther(Shrink(program.operations, fails), fails, generator, seed, kTries);
    shown_text = RunFresh(shown, settings, make_subject, interval);
  }
  if (shown_text.empty()) {
    shown = program;
    shown_text = text;
    origin += " (a fresh subject agrees: what ran before matters)";
  }
  report.num_shrunk = shown.operations.size();
  report.difference = shown_text + "\n" + origin + "\n" + FormatProgram(shown);
}

}  // namespace

ComparisonReport Compare(const RunSettings& settings, const SubjectMaker& make_subject,
                         uint64_t seed, uint64_t num_operations) {
  ComparisonReport report;
  KernelBallast ballast;
  if (const Status status = ballast.Hold(); !status.ok()) {
    report.difference = status.ToString();
    return report;
  }
  Result<std::unique_ptr<Subject>> subject = make_subject(settings);
  if (!subject.ok()) {
    report.difference = "make the subject: " + subject.status().ToString();
    return report;
  }
  KernelSystem kernel;
  SequentialRun run(kernel, (*subject)->system(), ChecksFor(settings, kRarely));
  SequentialRun unpolled(kernel, (*subject)->system(), {false, kRarely, PageBytes()});
  GeneratorOptions options;
  options.page_bytes = PageBytes();
  options.can_write_quietly = KernelSystem::CanWriteQuietly();
  options.has_write_watches = settings.wakeup == Wakeup::kWasFull;
  while (run.num_applied() + unpolled.num_applied() < num_operations) {
    std::mt19937_64 random(ProgramSeed(seed, report.num_programs));
    // Every third pipe is never polled.
    RunSettings of_program = settings;
    of_program.has_polls = settings.has_polls && random() % 3 != 0;
    options.has_polls = of_program.has_polls;
    options.has_watches =
        of_program.has_polls && settings.has_watches && settings.poll_wakeup != PollWakeup::kNone;
    const Program program{FormatSettings(of_program), GenerateOperations(random, options)};
    const std::optional<Divergence> found =
        (of_program.has_polls ? run : unpolled).Run(program.operations);
    std::string text = found ? found->text : "";
    if (!found && report.num_programs % kProgramsPerCheck == 0) {
      const Status status = (*subject)->CheckAtRest();
      if (!status.ok()) text = "at rest: " + status.ToString();
    }
    if (!text.empty()) {
      Tell(program, of_program, options, make_subject, seed, text, report);
      break;
    }
    ++report.num_programs;
  }
  report.num_operations = run.num_applied() + unpolled.num_applied();
  return report;
}

std::string Replay(const Program& program, const SubjectMaker& make_subject) {
  const Result<RunSettings> settings = ParseSettings(program.settings);
  if (!settings.ok()) return settings.status().ToString();
  KernelBallast ballast;
  if (const Status status = ballast.Hold(); !status.ok()) return status.ToString();
  std::string difference = RunFresh(program, *settings, make_subject, kAlways);
  if (difference.empty()) difference = RunFresh(program, *settings, make_subject, kRarely);
  return difference;
}

}  // namespace pipeyard::pipe::differential
