// The end of what a worker printed.
//
// Thread safety: pure but for the file.
#pragma once

#include <cstdint>
#include <string>

namespace pipeyard::runner {

struct OutputTail {
  std::string data;            // the newest bytes of the file, empty where there is none
  uint64_t omitted_bytes = 0;  // that stand before them
};

// Reads at most `max_bytes`, however large the file is.
OutputTail ReadOutputTail(const std::string& path, uint64_t max_bytes);

}  // namespace pipeyard::runner
