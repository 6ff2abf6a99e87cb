// Random programs. Each has a character of its own (how often it writes, sizes it likes, how large
// its pipes are), so that rare states are reached by some program instead of by none.
//
// Thread safety: pure; the generator of random numbers is the caller's.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "workloads/pipe/differential/operation.h"

namespace pipeyard::pipe::differential {

struct GeneratorOptions {
  size_t num_operations = 300;
  uint32_t page_bytes = 4096;
  // Resizes above this, but for those that must be refused (above 2^31), are not asked for: where
  // neither quota nor privilege ends them, memory would.
  uint32_t max_pipe_bytes = 4 << 20;
  bool has_polls = true;
  bool has_watches = true;
  // Reports of a write end (they depend on EngineConfig::wakeup).
  bool has_write_watches = true;
  bool can_write_quietly = true;
  // Above 1: calls may wait.
  int num_actors = 1;
};

std::vector<Operation> GenerateOperations(std::mt19937_64& random, const GeneratorOptions& options);

// Of the `index`-th program of a run with `seed`: each can be made again without the others.
uint64_t ProgramSeed(uint64_t seed, uint64_t index);

}  // namespace pipeyard::pipe::differential
