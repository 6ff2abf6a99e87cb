// Makes a run of a sweep: which hosts, which cells, which trials in which order. SubmitSweep stores
// what it returns and PlanSweep shows it.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "controller/spec/sweep.h"
#include "pipeyard/v1/settings.pb.h"
#include "storage/records.h"

namespace pipeyard::scheduler {

// A host as it stands at submit.
struct HostView {
  storage::HostRecord record;
  bool is_connected = false;
  // Since it was last heard of; 0 while it is connected.
  Nanos away_for{0};
};

struct RunRequest {
  std::string run_id;
  std::string request_id;
  std::string file_name;
  std::string sweep_yaml;
  std::vector<std::string> sets;
  std::string note;
  // Beside, and over, those of the sweep.
  std::map<std::string, std::string> labels;
  // Taken where the sweep names none.
  uint64_t drawn_seed = 0;
  int64_t created_utc = 0;
};

struct LeftOutHost {
  std::string host;
  std::string reason;  // "has 1 node, the sweep asks for 2"
};

struct BuiltRun {
  storage::RunRecord run;
  // Hosts that the selector passes over, and names it asks for that no host has. By name.
  std::vector<LeftOutHost> left_out;
};

// Trials of one run. All of a run are in memory, and are stored in one transaction.
inline constexpr uint64_t kMaxTrials = 1'000'000;

// Precondition: `sweep` is valid (ReadResult::ok()). A selected host joins when it is connected or
// was heard of within the sweep's host_wait. Cells are not_applicable, with a reason and without
// trials, where the host does not match `expect` or cannot run the variant's workload and target.
// Cells are ordered by host name, then variant; every cell that applies gets repetitions.max
// trials, in the order of TrialOrder(). Errors: kFailedPrecondition where no host is selected; the
// message says why for each; kInvalidArgument for more than kMaxTrials.
Result<BuiltRun> BuildRun(const spec::Sweep& sweep, std::span<const HostView> hosts,
                          const RunRequest& request);

// Shell-style match of the whole text: '*' any run of characters, '?' any one. O(text × pattern).
bool GlobMatches(std::string_view pattern, std::string_view text);

// Warm-up plus duration plus start-up of one attempt; nullopt where the variant does not say.
std::optional<Nanos> ExpectedTrialTime(const v1::VariantSettings& variant);

}  // namespace pipeyard::scheduler
