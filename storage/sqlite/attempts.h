// Attempts: their lease, their end as the controller judges it, and the frames of their results
// unpacked into rows.
//
// Thread safety: the Connection's. Errors: those of Store.
#pragma once

#include <string>

#include "base/status.h"
#include "storage/sqlite/connection.h"
#include "storage/store.h"

namespace pipeyard::storage {

// Repeating it changes nothing; kAlreadyExists where the id or the number is that of another
// attempt.
Status Write(Connection& connection, const InsertAttempt& mutation);
// OK where there is no such attempt; kFailedPrecondition where it has frames or an end, for then it
// was one.
Status Write(Connection& connection, const RemoveAttempt& mutation);
// kNotFound where there is no such attempt.
Status Write(Connection& connection, const EndAttempt& mutation);
// kNotFound where there is no such attempt; kInvalidArgument for sequence 0 or a final frame
// without an end.
Status Write(Connection& connection, const StoreFrame& mutation);

Result<bool> KnowsAttempt(Connection& connection, const std::string& attempt_id);

}  // namespace pipeyard::storage
