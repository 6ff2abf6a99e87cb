#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "controller/cli/explain_metadata.h"
#include "controller/report/table.h"

namespace pipeyard::cli {
namespace {

using Json = nlohmann::ordered_json;
using memory::ObjectRequest;

const char* SourceName(const ObjectAnswer& answer) {
  return answer.request.source == ObjectRequest::Source::kSlab ? "slab" : "page-block";
}

// nullptr: nobody.
const char* AskerName(Asker asker) {
  switch (asker) {
    case Asker::kNobody:
      break;
    case Asker::kPipe:
      return "pipe";
    case Asker::kSlabAllocator:
      return "slab-allocator";
    case Asker::kPageAllocator:
      return "page-allocator";
  }
  return nullptr;
}

Json NodeOrNull(numa::NodeId node) { return node == numa::kNoNode ? Json() : Json(node); }

Json StateJson(memory::InterleaveState state) {
  return {{"prev", state.prev}, {"carry", state.carry}};
}

}  // namespace

std::string MetadataJson(const MetadataQuestion& question,
                         const std::vector<MetadataAnswer>& answers) {
  Json json = {{"schema", "pipeyard.explain_metadata/v1"},
               {"policy", memory::FormatPolicy(question.policy)},
               {"slots", question.slots},
               {"page_bytes", question.page_bytes},
               {"cpu_node", question.cpu_node},
               {"local_node", question.local},
               {"max_slab_slots", memory::MaxSlabSlots(question.page_bytes)},
               {"placements", Json::array()}};
  for (const MetadataAnswer& answer : answers) {
    Json objects = Json::array();
    for (const ObjectAnswer& object : answer.objects) {
      const char* asker = AskerName(object.asker);
      objects.push_back({{"object", object.object},
                         {"bytes", object.bytes},
                         {"source", SourceName(object)},
                         {"named_node", NodeOrNull(object.request.node)},
                         {"asked_by", asker == nullptr ? Json() : Json(asker)},
                         {"node", NodeOrNull(object.node)},
                         {"allowed", object.allowed.Nodes()},
                         {"why", object.why}});
    }
    json["placements"].push_back({{"placement", memory::MetadataPlacementName(answer.placement)},
                                  {"objects", std::move(objects)},
                                  {"end", StateJson(answer.end)}});
  }
  return json.dump(2) + "\n";
}

std::string MetadataText(const MetadataQuestion& question,
                         const std::vector<MetadataAnswer>& answers) {
  std::string text =
      fmt::format("a pipe of {} slots, policy {}, created on a CPU of node {}", question.slots,
                  memory::FormatPolicy(question.policy), question.cpu_node);
  if (question.local != question.cpu_node)
    text += fmt::format(" (whose nearest memory is node {})", question.local);
  text += fmt::format("\npages of {}: rings of up to {} slots are slab objects\n",
                      FormatBytes(static_cast<int64_t>(question.page_bytes)),
                      std::bit_floor(memory::MaxSlabSlots(question.page_bytes)));
  for (const MetadataAnswer& answer : answers) {
    text +=
        fmt::format("\nmetadata_placement: {}\n", memory::MetadataPlacementName(answer.placement));
    report::Table table({{"object"},
                         {"bytes", report::Align::kRight},
                         {"from"},
                         {"node", report::Align::kRight},
                         {"why"}},
                        "  ");
    for (const ObjectAnswer& object : answer.objects) {
      table.Row({object.object, std::to_string(object.bytes), SourceName(object),
                 object.node == numa::kNoNode ? "any" : std::to_string(object.node), object.why});
    }
    text += table.Render(/*use_colour=*/false);
    if (answer.end != question.start) {
      text +=
          fmt::format("  interleaving went from prev {}, carry {} to prev {}, carry {}\n",
                      question.start.prev, question.start.carry, answer.end.prev, answer.end.carry);
    }
  }
  return text;
}

}  // namespace pipeyard::cli
