// Text that may travel: protobuf's parsers refuse a string that is not UTF-8, and with it the whole
// message. A frame with one such byte would break every stream that it is resent on, so text from
// programs, files and error messages is cleaned before it enters a message.
//
// Thread safety: pure functions.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace pipeyard::session {

// Well-formed UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
bool IsUtf8(std::string_view text);

// `text` with each byte that is not part of well-formed UTF-8 replaced by '?', cut at a character's
// end so that at most `most_bytes` are left.
std::string CleanText(std::string_view text, size_t most_bytes);

// Name of the first string field of `message`, at any depth, that is not UTF-8; empty where all
// are. Does not look into maps: a Frame has none of text, and reading one through reflection needs
// protobuf's own library to be built for ThreadSanitizer where we are.
std::string FindFieldThatIsNotUtf8(const google::protobuf::Message& message);

}  // namespace pipeyard::session
