#include "proto/settings/definition.h"

#include <algorithm>
#include <map>
#include <vector>

#include "proto/settings/catalog.h"
#include "proto/settings/command_parameters.h"
#include "proto/settings/text.h"

namespace pipeyard::settings {
namespace {

Status CheckCommandValue(std::string_view text) {
  if (text.empty()) return InvalidArgument("is empty; a value was meant");
  return Status::Ok();
}

// Any parameter of any command.
const Definition& CommandParameterDefinition() {
  static constexpr std::string_view kWorkloads[] = {"command"};
  static const Definition* const kDefinition = new Definition{.name = "parameter",
                                                              .default_value = std::string(),
                                                              .workloads = kWorkloads,
                                                              .help = "a parameter of the command",
                                                              .check_text = CheckCommandValue};
  return *kDefinition;
}

Value DefaultOf(const catalog::Row& row) {
  if (const bool* flag = std::get_if<bool>(&row.default_value)) return *flag;
  if (const int64_t* integer = std::get_if<int64_t>(&row.default_value)) return *integer;
  const std::string text(std::get<std::string_view>(row.default_value));
  if (row.kind == Kind::kStructure) return JsonText{text};
  return text;
}

struct Catalog {
  std::vector<Definition> definitions;
  // Of each workload, by name.
  std::map<std::string_view, std::map<std::string_view, const Definition*>> by_workload;
};

Catalog* BuildCatalog() {
  auto* built = new Catalog;
  for (const std::span<const catalog::Row> rows :
       {catalog::TransferRows(), catalog::MessagingRows(), catalog::ParameterRows(),
        catalog::EngineRows(), catalog::PlacementRows(), catalog::KnobRows()}) {
    for (const catalog::Row& row : rows) {
      built->definitions.push_back({.name = row.name,
                                    .kind = row.kind,
                                    .default_value = DefaultOf(row),
                                    .min = row.min,
                                    .max = row.max,
                                    .zero_word = row.zero_word,
                                    .choices = row.choices,
                                    .unsupported_choices = row.unsupported_choices,
                                    .workloads = row.workloads,
                                    .targets = row.targets,
                                    .is_supported = row.is_supported,
                                    .help = row.help,
                                    .check_text = row.check_text});
    }
  }
  std::sort(built->definitions.begin(), built->definitions.end(),
            [](const Definition& a, const Definition& b) {
              if (a.name != b.name) return a.name < b.name;
              return std::lexicographical_compare(a.workloads.begin(), a.workloads.end(),
                                                  b.workloads.begin(), b.workloads.end());
            });
  for (const WorkloadDefinition& workload : catalog::WorkloadRows()) {
    auto& names = built->by_workload[workload.name];
    for (const Definition& definition : built->definitions) {
      const auto& workloads = definition.workloads;
      if (workloads.empty() ||
          std::find(workloads.begin(), workloads.end(), workload.name) != workloads.end()) {
        names.emplace(definition.name, &definition);
      }
    }
  }
  return built;
}

const Catalog& TheCatalog() {
  static const Catalog* const kCatalog = BuildCatalog();
  return *kCatalog;
}

}  // namespace

std::span<const WorkloadDefinition> Workloads() { return catalog::WorkloadRows(); }

const WorkloadDefinition* FindWorkload(std::string_view name) {
  for (const WorkloadDefinition& workload : Workloads()) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

std::span<const Definition> Definitions() { return TheCatalog().definitions; }

const Definition* FindDefinition(std::string_view workload, std::string_view name) {
  const auto names = TheCatalog().by_workload.find(workload);
  if (names == TheCatalog().by_workload.end()) return nullptr;
  const auto found = names->second.find(name);
  if (found != names->second.end()) return found->second;
  if (workload == "command" && IsCommandParameterName(name)) return &CommandParameterDefinition();
  return nullptr;
}

bool AppliesTo(const Definition& definition, std::string_view target) {
  return definition.targets.empty() ||
         std::find(definition.targets.begin(), definition.targets.end(), target) !=
             definition.targets.end();
}

std::string_view NearestName(std::string_view name, std::span<const std::string_view> known) {
  std::string_view nearest;
  // Half of a short name may not differ, else anything is near.
  size_t best = std::min<size_t>(3, (name.size() + 1) / 2) + 1;
  for (const std::string_view candidate : known) {
    const size_t distance = EditDistance(name, candidate, best);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::span<const MetricDefinition> Metrics(std::string_view workload) {
  if (workload == "bandwidth") return catalog::BandwidthMetrics();
  if (workload == "bulk") return catalog::BulkMetrics();
  if (workload == "churn") return catalog::ChurnMetrics();
  if (workload == "fault") return catalog::FaultMetrics();
  if (workload == "messaging") return catalog::MessagingMetrics();
  if (workload == "transfer") return catalog::TransferMetrics();
  return {};
}

}  // namespace pipeyard::settings
