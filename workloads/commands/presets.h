// Commands that Pipeyard knows: their files as one would write them (docs/COMMANDS.md). Known is
// not allowed: an agent runs one only where a file of its commands.d names it.
//
// Thread safety: immutable; everything returned lives for ever.
#pragma once

#include <string_view>
#include <vector>

#include "workloads/commands/command.h"

namespace pipeyard::commands {

// Sorted.
std::vector<std::string_view> PresetNames();
// nullptr where there is none.
const Command* FindPreset(std::string_view name);
// The file of the preset; empty where there is none.
std::string_view PresetText(std::string_view name);

}  // namespace pipeyard::commands
