#include "controller/spec/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "controller/spec/fields.h"
#include "proto/settings/parse.h"

namespace pipeyard::spec {
namespace {

using settings::Definition;
using settings::Kind;
using settings::WorkloadDefinition;

constexpr std::array<std::string_view, 3> kPrefixes{"engine.", "placement.", "knob."};
constexpr std::array<std::string_view, 3> kTargets{"engine", "kernel", "command"};
constexpr std::array<std::string_view, 5> kNodeListPolicies{
    "interleave:", "weighted-interleave:", "bind:", "preferred-many:", "preferred:"};

const Definition& TargetDefinition() {
  static const Definition* const kDefinition =
      new Definition{.name = "target", .kind = Kind::kChoice, .choices = kTargets};
  return *kDefinition;
}

const Definition* FindAnywhere(std::string_view name) {
  for (const Definition& definition : settings::Definitions()) {
    if (definition.name == name) return &definition;
  }
  return nullptr;
}

std::string Suggestion(const WorkloadDefinition* workload, std::string_view name) {
  for (const std::string_view prefix : kPrefixes) {
    const std::string prefixed = fmt::format("{}{}", prefix, name);
    if (FindAnywhere(prefixed) != nullptr) return fmt::format("did you mean '{}'?", prefixed);
  }
  std::vector<std::string_view> known{"target"};
  for (const Definition& definition : settings::Definitions()) {
    if (workload == nullptr ||
        settings::FindDefinition(workload->name, definition.name) == &definition) {
      known.push_back(definition.name);
    }
  }
  const std::string_view nearest = settings::NearestName(name, known);
  if (!nearest.empty()) return fmt::format("did you mean '{}'?", nearest);
  if (const Definition* other = FindAnywhere(name)) {
    return fmt::format("it is a parameter of {}", fmt::join(other->workloads, ", "));
  }
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) {
      return fmt::format("docs/SWEEPS.md lists the {} settings",
                         prefix.substr(0, prefix.size() - 1));
    }
  }
  std::vector<std::string_view> bare;
  std::copy_if(
      known.begin(), known.end(), std::back_inserter(bare),
      [](std::string_view candidate) { return candidate.find('.') == std::string_view::npos; });
  return fmt::format("one of {}, or engine.X, placement.X, knob.X", fmt::join(bare, ", "));
}

// "8", "0-3", "1=2": what stands behind the comma of a list of CPUs, nodes or weights.
bool IsListTail(const Node& node) {
  return node.IsScalar() && !node.is_quoted && !node.text.empty() &&
         node.text.find_first_not_of("0123456789-=") == std::string::npos;
}

bool IsPolicyHead(const Node& node) {
  return node.IsScalar() && !node.is_quoted &&
         std::any_of(kNodeListPolicies.begin(), kNodeListPolicies.end(),
                     [&](std::string_view policy) { return node.text.starts_with(policy); });
}

}  // namespace

const Definition* ResolveName(const WorkloadDefinition* workload, std::string_view name,
                              Place place, Problems& problems) {
  if (name == "target") return &TargetDefinition();
  if (workload == nullptr) {
    if (const Definition* found = FindAnywhere(name)) return found;
  } else if (const Definition* found = settings::FindDefinition(workload->name, name)) {
    return found;
  }
  if (name == "kernel" || name.starts_with("kernel.")) {
    problems.Error(place, fmt::format("'{}' is reserved for a later version", name));
    return nullptr;
  }
  problems.Error(place, fmt::format("unknown setting '{}'", name), Suggestion(workload, name));
  return nullptr;
}

std::optional<Level> ReadLevel(const Definition& definition, std::string_view name,
                               const Node& node, Problems& problems) {
  std::string text;
  if (definition.kind == Kind::kStructure && (node.IsMap() || node.IsList())) {
    text = ToJson(node);
  } else if (auto scalar = ScalarText(node, name, problems)) {
    text = *std::move(scalar);
  } else {
    return std::nullopt;
  }
  Result<settings::Value> value = settings::ParseValue(definition, text);
  if (!value.ok()) {
    problems.Error(node.place, name, value.status());
    return std::nullopt;
  }
  return Level{.value = *std::move(value), .text = std::move(text), .place = node.place};
}

void CheckLevelSupported(const WorkloadDefinition* workload, std::string_view name,
                         const Level& level, Problems& problems) {
  const Definition* const definition =
      workload == nullptr ? FindAnywhere(name) : settings::FindDefinition(workload->name, name);
  if (definition == nullptr) return;  // target, or a parameter of a command
  const auto why = settings::WhyUnsupported(*definition, level.value);
  if (!why) return;
  const std::string usual = settings::FormatValue(*definition, definition->default_value);
  problems.Error(level.place, fmt::format("{}: {}", name, *why),
                 usual.empty() ? "leave it out" : fmt::format("its default is '{}'", usual));
}

bool IsBrokenHalf(const Node& node, size_t index) {
  if (node.IsMap()) {
    const auto is_tail = [&](size_t at) {
      const Entry& entry = node.entries[at];
      return entry.value.kind == Node::Kind::kNull && IsListTail(entry.key);
    };
    size_t head = index;
    while (head > 0 && is_tail(head)) --head;
    const Node& value = node.entries[head].value;
    return head != index && value.IsScalar() && !value.is_quoted;
  }
  if (!node.IsList() || !IsListTail(node.items[index])) return false;
  size_t head = index;
  while (head > 0 && IsListTail(node.items[head])) --head;
  return IsPolicyHead(node.items[head]);
}

void ReportBrokenHalves(const Node& node, std::string_view about, Problems& problems) {
  const size_t size = node.IsMap() ? node.entries.size() : node.items.size();
  for (size_t i = 1; i < size; ++i) {
    if (!IsBrokenHalf(node, i)) continue;
    const Node& head = node.IsMap() ? node.entries[i - 1].value : node.items[i - 1];
    std::string whole = head.text;
    for (; i < size && IsBrokenHalf(node, i); ++i) {
      whole += ',' + (node.IsMap() ? node.entries[i].key.text : node.items[i].text);
    }
    problems.Error(head.place, fmt::format("{}: YAML splits '{}' at its commas", about, whole),
                   fmt::format("quote it: \"{}\"", whole));
  }
}

}  // namespace pipeyard::spec
