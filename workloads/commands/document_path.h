// One number out of a JSON or YAML text, by a path: .lat.p99, .runs[0].ops, ."a.b".
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace pipeyard::commands {

// A key of a map, or an index of a list from 0.
using PathStep = std::variant<std::string, size_t>;

// Errors: kInvalidArgument says what a path looks like.
Result<std::vector<PathStep>> ParsePath(std::string_view path);

// The number at `path`. Errors: kInvalidArgument: the text is no JSON (YAML); kNotFound: nothing is
// at the path, naming the step that fails; kOutOfRange: what is there is no number.
Result<double> NumberInJson(std::string_view text, const std::vector<PathStep>& path);
Result<double> NumberInYaml(std::string_view text, const std::vector<PathStep>& path);

// A decimal number and nothing else; neither infinite nor NaN. Errors: kOutOfRange quotes the text.
Result<double> ParseNumber(std::string_view text);

}  // namespace pipeyard::commands
