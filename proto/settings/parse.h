// From the text of a sweep file or a flag to a Value, and back; and what a Value must satisfy.
//
// Messages are "what; what was meant", without the name of the setting: the caller, who knows the
// place, adds it.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "proto/settings/definition.h"
#include "proto/settings/value.h"

namespace pipeyard::settings {

// The value of one setting as a person writes it. A kStructure takes a bare word or JSON whose
// leaves are texts as written; sizes and durations within become base units. Errors:
// kInvalidArgument: wrong kind, missing or wrong unit, out of range, not a choice, control
// characters.
Result<Value> ParseValue(const Definition& definition, std::string_view text);

// Whether a value from elsewhere (the wire, a caller) could have come from ParseValue.
// Errors: kInvalidArgument.
Status CheckValue(const Definition& definition, const Value& value);

// What ParseValue reads back to the same value: "64KiB", "1.5s", "none".
std::string FormatValue(const Definition& definition, const Value& value);

// "'stress-vm-50' is not supported yet", where this version does not execute the value; nullopt
// where it does.
std::optional<std::string> WhyUnsupported(const Definition& definition, const Value& value);

}  // namespace pipeyard::settings
