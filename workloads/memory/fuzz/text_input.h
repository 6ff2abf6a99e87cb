// What a fuzzer's bytes are as text that users and hosts write: policies, weights, lists of
// numbers, and the files of the host's weight table. Whatever they are, a parser answers or
// refuses; what it accepts, it accepts again in the form in which it prints it.
//
// Thread safety: thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace pipeyard::memory::fuzz {

// Empty where all held. Else what did not.
std::string RunText(std::string_view text);

}  // namespace pipeyard::memory::fuzz
