// Facts of hosts as they are stored: canonical JSON, each distinct content once.
//
// Thread safety: the Connection's.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "pipeyard/v1/agent.pb.h"
#include "storage/sqlite/connection.h"

namespace pipeyard::storage {

// Compact JSON with the field names of v1::HostFacts, keys sorted bytewise. Equal facts have equal
// texts. Bytes that are no UTF-8 become U+FFFD.
std::string FactsToJson(const v1::HostFacts& facts);
// Errors: kDataLoss where the text is not what FactsToJson() writes. Unknown keys are passed over.
Result<v1::HostFacts> FactsFromJson(const std::string& text);

// The row of these facts, inserted where there is none.
Result<int64_t> InternFacts(Connection& connection, const v1::HostFacts& facts);

}  // namespace pipeyard::storage
