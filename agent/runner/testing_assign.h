// A valid assignment, for tests.
#pragma once

#include <fmt/format.h>

#include <map>

#include "base/units.h"
#include "pipeyard/v1/agent.pb.h"
#include "proto/settings/variant.h"

namespace pipeyard::runner {

inline constexpr char kTestStore[] = "01931c2e-0000-7000-8000-00000000000a";

// A transfer over pipe(2) of `duration`; `number` makes the attempt id.
inline v1::Assign TestAssign(int number, Nanos duration = Milliseconds(100)) {
  v1::Assign assign;
  assign.set_attempt_id(fmt::format("01931c2e-0000-7000-8000-{:012d}", number));
  assign.set_store_id(kTestStore);
  assign.set_epoch(1);
  assign.set_run_id("01931c2e-0000-7000-8000-00000000000b");
  assign.set_trial_name("host/0123456789abcdef/1");
  assign.set_trial_timeout_ns(Seconds(60).count());
  const std::map<std::string, settings::Value> given = {
      {"duration", settings::Value(duration.count())}, {"warmup", settings::Value(int64_t{0})}};
  const auto variant = settings::MakeVariant("transfer", "kernel", given);
  if (variant.ok()) *assign.mutable_variant() = settings::ToProto(*variant);
  return assign;
}

}  // namespace pipeyard::runner
