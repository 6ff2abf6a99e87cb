#include "workloads/pipe/fuzz/pipe_input.h"

#include <algorithm>
#include <array>
#include <memory>

#include "workloads/pipe/differential/engine_system.h"
#include "workloads/pipe/differential/model_system.h"
#include "workloads/pipe/differential/sequential_run.h"
#include "workloads/pipe/differential/stream.h"

namespace pipeyard::pipe::fuzz {
namespace {

using differential::Action;
using differential::Operation;

constexpr uint32_t kPage = 4096;
constexpr size_t kMaxOperations = 400;
// Small, so that programs reach them; what nothing limits ends here.
constexpr PipeLimits kLimits{.max_bytes = 64 * kPage, .user_pages_soft = 80, .user_pages_hard = 96};
constexpr uint32_t kMaxSlots = 256;

// Not the waiting ones, nor watches, which the model does not know.
constexpr Action kActions[] = {
    Action::kWrite,          Action::kWrite,       Action::kRead,       Action::kRead,
    Action::kCreate,         Action::kOpenReader,  Action::kOpenWriter, Action::kClose,
    Action::kWriteQuietly,   Action::kSetPacket,   Action::kResize,     Action::kResize,
    Action::kSetNonblocking, Action::kQueuedBytes, Action::kCapacity,   Action::kPoll,
};

// Two bits choose the kind: a small number, around a multiple of pages, any number, around a power
// of two pages.
uint32_t DecodeSize(uint32_t value) {
  const uint32_t rest = value & 0x3fff;
  switch (value >> 14) {
    case 0:
      return rest & 0xff;
    case 1:
      return (rest & 0x1f) * kPage + (rest >> 5 & 3) - ((rest & 0x1f) != 0 ? 1 : 0);
    case 2:
      return rest;
    default:
      return std::min(1u << (rest & 0xf), kMaxSlots) * kPage + (rest >> 4 & 1) - (rest >> 5 & 1);
  }
}

Operation DecodeOperation(const uint8_t* bytes) {
  Operation operation;
  operation.action = kActions[bytes[0] % std::size(kActions)];
  operation.file = bytes[1] % differential::kMaxFiles;
  const uint32_t value = bytes[2] | uint32_t{bytes[3]} << 8;
  switch (operation.action) {
    case Action::kOpenReader:
    case Action::kOpenWriter:
      operation.value = value % differential::kMaxFiles;
      break;
    case Action::kCreate:
      operation.value = 1;
      break;
    case Action::kSetPacket:
      operation.value = value & 1;
      break;
    case Action::kSetNonblocking:
      // Mostly on: a call that would wait is passed over.
      operation.value = value % 8 != 0;
      break;
    case Action::kPoll:
      operation.value = value;
      break;
    case Action::kResize:
      operation.value = value == 0xffff ? UINT32_MAX : DecodeSize(value);
      break;
    default:
      operation.value = DecodeSize(value);
  }
  return operation;
}

struct Choices {
  PageCache page_cache;
  Capabilities capabilities;
  bool has_polls;
};

Choices DecodeChoices(std::span<const uint8_t> bytes) {
  const uint8_t first = bytes.empty() ? 0 : bytes[0];
  const uint8_t second = bytes.size() < 2 ? 0 : bytes[1];
  return {static_cast<PageCache>(first % 5),
          {.sys_resource = (second & 1) != 0, .sys_admin = (second & 2) != 0},
          (second & 4) == 0};
}

// One for each page cache, made when first asked for.
Engine& EngineWith(PageCache page_cache) {
  static std::array<std::unique_ptr<Engine>, 5> engines;
  std::unique_ptr<Engine>& engine = engines[static_cast<size_t>(page_cache)];
  if (engine == nullptr) {
    EngineSetup setup;
    setup.config.page_cache = page_cache;
    setup.worker_cpus = {0};
    setup.page_bytes = kPage;
    setup.limits = kLimits;
    setup.extra_pipes = differential::kMaxFiles;
    setup.extra_slots = differential::kMaxFiles * kMaxSlots;
    engine = *Engine::Create(setup,
                             *numa::Topology::Make({{0, {0}, int64_t{1} << 30, {10}}}, {0}, false));
  }
  return *engine;
}

}  // namespace

differential::Program DecodeProgram(std::span<const uint8_t> bytes) {
  differential::Program program;
  // A pipe to begin with, else most inputs do nothing.
  program.operations.push_back({Action::kCreate, 0, 0, 1});
  for (size_t at = 2; at + 4 <= bytes.size() && program.operations.size() < kMaxOperations;
       at += 4) {
    program.operations.push_back(DecodeOperation(&bytes[at]));
  }
  return program;
}

std::string RunInput(std::span<const uint8_t> bytes) {
  const Choices choices = DecodeChoices(bytes);
  const differential::Program program = DecodeProgram(bytes);
  Engine& engine = EngineWith(choices.page_cache);
  engine.worker(0).SetIdentity({0, choices.capabilities});
  differential::EngineSystem system(engine);
  differential::ModelSystem model(
      {.page_bytes = kPage, .limits = kLimits, .capabilities = choices.capabilities});
  differential::SequentialRun run(model, system, {.has_polls = choices.has_polls, .interval = 3});
  std::string fault;
  if (const auto found = run.Run(program.operations)) fault = found->text;
  if (fault.empty() && engine.UserSlots(0) != 0) fault = "slots are still charged";
  if (const Status status = engine.CheckConservation(); fault.empty() && !status.ok()) {
    fault = status.ToString();
  }
  if (fault.empty()) return fault;
  return fault + "\n# page cache " + std::string(PageCacheName(choices.page_cache)) + "\n" +
         FormatProgram(program);
}

}  // namespace pipeyard::pipe::fuzz
