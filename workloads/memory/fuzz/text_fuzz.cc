// libFuzzer's entry: what does not hold ends the process.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "workloads/memory/fuzz/text_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string fault =
      pipeyard::memory::fuzz::RunText({reinterpret_cast<const char*>(data), size});
  if (!fault.empty()) {
    std::fprintf(stderr, "%s\n", fault.c_str());
    std::abort();
  }
  return 0;
}
