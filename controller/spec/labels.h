// Labels and notes of a run: what may stand in them, wherever they come from.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace pipeyard::spec {

inline constexpr size_t kMaxLabels = 64;
// A key stands at the head of a column and in K=V; a value in a cell.
inline constexpr size_t kMaxLabelKeyBytes = 63;
inline constexpr size_t kMaxLabelValueBytes = 1024;
inline constexpr size_t kMaxNoteBytes = 4096;

using Labels = std::map<std::string, std::string>;

// Keys: 1 to 63 bytes without '='. Values: up to 1,024 bytes, empty ones too. Both are UTF-8
// without control characters. Errors: kInvalidArgument says what is wrong, and with which key.
Status CheckLabel(std::string_view key, std::string_view value);

// At most kMaxLabels of "K=V", each as above; the first '=' divides. Errors: kInvalidArgument, also
// for a key that is given twice.
Result<Labels> ParseLabels(const std::vector<std::string>& texts);

// Up to 4,096 bytes of UTF-8; of control characters line ends and tabs only. Errors:
// kInvalidArgument.
Status CheckNote(std::string_view note);

}  // namespace pipeyard::spec
