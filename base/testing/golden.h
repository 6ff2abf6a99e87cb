// Golden files of tests: whole outputs, compared as text. PIPEYARD_UPDATE_GOLDEN=1 rewrites them;
// the diff is then reviewed.
//
// Thread safety: confined to the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace pipeyard::testing {

// The whole file; empty where there is none.
inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline bool UpdatesGolden() {
  const char* const update = std::getenv("PIPEYARD_UPDATE_GOLDEN");
  return update != nullptr && std::string(update) == "1";
}

// `path`: PIPEYARD_SOURCE_DIR "/room/testdata/name.golden".
inline void ExpectGolden(const std::string& path, const std::string& actual) {
  if (UpdatesGolden()) std::ofstream(path, std::ios::binary) << actual;
  EXPECT_EQ(ReadFile(path), actual) << path << "; PIPEYARD_UPDATE_GOLDEN=1 rewrites it";
}

}  // namespace pipeyard::testing
