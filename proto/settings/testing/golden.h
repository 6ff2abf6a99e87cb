// Golden files of tests: whole outputs, compared as text. PIPEYARD_UPDATE_GOLDEN=1 rewrites them;
// the diff is then reviewed.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace pipeyard::settings::testing {

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

// `path` is relative to the root of the sources.
inline void ExpectGolden(const std::string& path, const std::string& actual) {
  const std::string whole = std::string(PIPEYARD_SOURCE_DIR) + "/" + path;
  if (UpdatesGolden()) std::ofstream(whole, std::ios::binary) << actual;
  EXPECT_EQ(ReadFile(whole), actual) << path << "; PIPEYARD_UPDATE_GOLDEN=1 rewrites it";
}

}  // namespace pipeyard::settings::testing
