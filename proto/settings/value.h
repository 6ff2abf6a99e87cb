// Value: what a setting holds, in base units, and its canonical text.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/status.h"

namespace pipeyard::settings {

// A map or list (engine.topology), held as compact JSON with keys sorted bytewise.
struct JsonText {
  std::string text;
  friend bool operator==(const JsonText&, const JsonText&) = default;
};

// bool: flags. int64_t: counts, bytes, nanoseconds. double: fractions (2% is 0.02). std::string:
// words and host-relative values as written.
using Value = std::variant<bool, int64_t, double, std::string, JsonText>;

// The text that identity is computed over: "true", "65536", "0.02" (shortest that reads back to the
// same double), the word itself, compact JSON. Two equal values have equal texts, and within one
// setting two different values have different texts.
std::string CanonicalText(const Value& value);

}  // namespace pipeyard::settings
