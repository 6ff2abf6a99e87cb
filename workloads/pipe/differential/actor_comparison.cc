#include "workloads/pipe/differential/actor_comparison.h"

#include <unistd.h>

#include "workloads/pipe/differential/actor_run.h"
#include "workloads/pipe/differential/ballast.h"
#include "workloads/pipe/differential/engine_subject.h"
#include "workloads/pipe/differential/shrink.h"

namespace pipeyard::pipe::differential {
namespace {

// Each run takes a millisecond.
constexpr int kMaxShrinkRuns = 600;
constexpr int kMaxTries = 3000;
constexpr size_t kOperationsOfProgram = 150;

// Both sides and the threads, for one program after another.
struct Bench {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<EngineSystem> system;
  std::unique_ptr<KernelSystem> kernel = std::make_unique<KernelSystem>();
  std::unique_ptr<ActorRun> run;
};

Result<Bench> MakeBench(const RunSettings& settings, const EngineSystemMaker& make_system) {
  Bench bench;
  PIPEYARD_ASSIGN_OR_RETURN(bench.engine, MakeEngine(settings));
  bench.system = make_system(*bench.engine);
  bench.run = std::make_unique<ActorRun>(*bench.kernel, *bench.system, *bench.engine,
                                         settings.num_actors, settings.has_polls);
  return bench;
}

std::string RunFresh(const std::vector<Operation>& operations, const RunSettings& settings,
                     const EngineSystemMaker& make_system) {
  Result<Bench> bench = MakeBench(settings, make_system);
  if (!bench.ok()) return bench.status().ToString();
  const std::optional<Divergence> found = bench->run->Run(operations);
  return found ? found->text : "";
}

}  // namespace

std::unique_ptr<EngineSystem> MakeEngineSystem(Engine& engine) {
  return std::make_unique<EngineSystem>(engine);
}

ActorReport CompareActors(const RunSettings& settings, const EngineSystemMaker& make_system,
                          uint64_t seed, uint64_t num_operations) {
  ActorReport report;
  KernelBallast ballast;
  if (const Status status = ballast.Hold(); !status.ok()) {
    report.report.difference = status.ToString();
    return report;
  }
  Result<Bench> bench = MakeBench(settings, make_system);
  if (!bench.ok()) {
    report.report.difference = bench.status().ToString();
    return report;
  }
  report.is_usable = bench->run->IsUsable();
  if (!report.is_usable) return report;
  GeneratorOptions options;
  options.num_operations = kOperationsOfProgram;
  options.page_bytes = static_cast<uint32_t>(::sysconf(_SC_PAGESIZE));
  options.can_write_quietly = KernelSystem::CanWriteQuietly();
  options.has_polls = settings.has_polls;
  options.has_watches = false;
  options.num_actors = settings.num_actors;
  while (bench->run->num_applied() < num_operations) {
    std::mt19937_64 random(ProgramSeed(seed, report.report.num_programs));
    const std::vector<Operation> operations = GenerateOperations(random, options);
    if (const std::optional<Divergence> found = bench->run->Run(operations)) {
      // The threads end each run outside all calls, so the same serve all tries.
      const auto fails = [&](const std::vector<Operation>& tried) {
        return bench->run->Run(tried).has_value();
      };
      const std::vector<Operation> shrunk =
          ShrinkFurther(Shrink(operations, fails, kMaxShrinkRuns), fails, options, seed, kMaxTries);
      report.report.num_shrunk = shrunk.size();
      report.report.difference = found->text + "\n" + RunFresh(shrunk, settings, make_system) +
                                 "\n# program " + std::to_string(report.report.num_programs) +
                                 " of PIPEYARD_SEED=" + std::to_string(seed) + "\n" +
                                 FormatProgram({FormatSettings(settings), shrunk});
      break;
    }
    if (report.report.num_programs % 64 == 0) {
      if (const Status status = bench->engine->CheckConservation(); !status.ok()) {
        report.report.difference = "at rest: " + status.ToString();
        break;
      }
    }
    ++report.report.num_programs;
  }
  report.report.num_operations = bench->run->num_applied();
  report.num_waits = bench->run->num_waits();
  return report;
}

std::string ReplayActors(const Program& program, const EngineSystemMaker& make_system) {
  const Result<RunSettings> settings = ParseSettings(program.settings);
  if (!settings.ok()) return settings.status().ToString();
  KernelBallast ballast;
  if (const Status status = ballast.Hold(); !status.ok()) return status.ToString();
  return RunFresh(program.operations, *settings, make_system);
}

}  // namespace pipeyard::pipe::differential
