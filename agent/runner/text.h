// Foreign text made fit for a reason or a log line: valid UTF-8, one line, limited.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pipeyard::runner {

// AttemptEnd.reason_text's limit.
inline constexpr size_t kMaxReasonTextBytes = 4096;

// At most `max_bytes` of `text`, from its beginning: line ends become " | ", other control
// characters and what is no UTF-8 become '?', white space at both ends goes.
std::string Printable(std::string_view text, size_t max_bytes);
// The same of the end of `text`.
std::string PrintableTail(std::string_view text, size_t max_bytes);

}  // namespace pipeyard::runner
