// A configuration file: a flat YAML map of option names to values.
//
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace pipeyard::options {

struct ConfigEntry {
  std::string name;
  std::vector<std::string> values;  // one, or those of a list
  uint32_t line = 0;                // from 1
  uint32_t column = 0;
};

// Errors: kInvalidArgument, as `FILE:LINE:COL: what`, for text that is no YAML, no map, nested or
// has a key twice.
Result<std::vector<ConfigEntry>> ReadConfig(std::string_view text, std::string_view file_name);

}  // namespace pipeyard::options
