// What a user names to `diff`: RUN, RUN@VARIANT or RUN/HOST.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace pipeyard::analysis {

struct DiffOperand {
  // As written: an id, a unique prefix of one, "latest" or "SWEEP~N". The store resolves it.
  std::string run;
  // An id prefix, or "name=value;..." in part; empty = every variant.
  std::string variant;
  // A host's name or a prefix of its id; empty = every host.
  std::string host;
};

// Grammar: RUN [ "/" HOST ] [ "@" VARIANT ]; VARIANT takes all that is left.
// Errors: kInvalidArgument where a part is empty, and for RUN/class:X ("not supported yet").
Result<DiffOperand> ParseDiffOperand(std::string_view text);

}  // namespace pipeyard::analysis
