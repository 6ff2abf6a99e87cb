#include "agent/runner/output_tail.h"

#include <algorithm>
#include <fstream>

namespace pipeyard::runner {

OutputTail ReadOutputTail(const std::string& path, uint64_t max_bytes) {
  OutputTail tail;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return tail;
  const auto end = static_cast<std::streamoff>(file.tellg());
  if (end <= 0) return tail;
  const uint64_t size = static_cast<uint64_t>(end);
  const uint64_t kept = std::min(size, max_bytes);
  tail.omitted_bytes = size - kept;
  tail.data.resize(kept);
  file.seekg(static_cast<std::streamoff>(size - kept));
  file.read(tail.data.data(), static_cast<std::streamsize>(kept));
  // A file that shrank meanwhile gives fewer.
  tail.data.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return tail;
}

}  // namespace pipeyard::runner
