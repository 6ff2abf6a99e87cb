// libFuzzer's entry: the first difference ends the process with the program on stderr.

#include <cstdio>
#include <cstdlib>

#include "workloads/pipe/fuzz/pipe_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string fault = pipeyard::pipe::fuzz::RunInput({data, size});
  if (!fault.empty()) {
    std::fprintf(stderr, "%s\n", fault.c_str());
    std::abort();
  }
  return 0;
}
