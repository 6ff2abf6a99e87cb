#include "workloads/load/aging_request.h"

#include <unistd.h>

#include <set>

#include "proto/settings/allocator_text.h"
#include "workloads/memory/metadata_placement.h"
#include "workloads/pipe/pipe_user.h"

namespace pipeyard::load {
namespace {

// Two sheaves of the smallest objects, rounded up.
constexpr uint64_t kObjectsInAdvance = 128;

}  // namespace

Result<std::optional<AgingRequest>> AgingRequestOf(const settings::Variant& variant,
                                                   uint64_t num_pipes, uint64_t num_makers) {
  PIPEYARD_ASSIGN_OR_RETURN(const std::optional<int> node,
                            settings::ReadAgedNode(variant.Text("allocator")));
  if (!node) return std::optional<AgingRequest>();
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t max_slots = memory::MaxSlabSlots(page_bytes);
  std::set<uint64_t> slots = {pipe::kDefaultSlots};
  const uint64_t wanted =
      pipe::SlotsForSize(static_cast<uint64_t>(variant.Integer("pipe_bytes")), page_bytes);
  if (wanted <= max_slots) slots.insert(wanted);
  if (variant.workload == "churn" && variant.Text("operation") == "resize") {
    for (uint64_t resized = 1; resized <= max_slots; resized *= 2) slots.insert(resized);
  }
  return std::optional<AgingRequest>({.node = *node,
                                      .num_free = num_pipes + num_makers * kObjectsInAdvance,
                                      .ring_slots = {slots.begin(), slots.end()}});
}

}  // namespace pipeyard::load
