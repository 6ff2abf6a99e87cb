// What a fuzzer's bytes do: operations on the engine's pipes, each compared with the model
// (differential/model_system.h), which the differential tests compare with the kernel. At the end
// every page, object and slot must be back where it belongs.
//
// Thread safety: one call at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "workloads/pipe/differential/operation.h"

namespace pipeyard::pipe::fuzz {

// Bytes 0 and 1 choose the page cache, the capabilities and whether poll is compared; then four
// bytes an operation: action, file, value (little endian, see pipe_input.cc).
differential::Program DecodeProgram(std::span<const uint8_t> bytes);

// Empty where all agreed. Else what differed and the program.
std::string RunInput(std::span<const uint8_t> bytes);

}  // namespace pipeyard::pipe::fuzz
