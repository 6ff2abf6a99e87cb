#include <fmt/format.h>

#include <algorithm>

#include "controller/spec/draft_reader.h"
#include "controller/spec/names.h"

namespace pipeyard::spec {
namespace {

void ForgetPlaces(Node& node) {
  node.place = Place();
  for (Node& item : node.items) ForgetPlaces(item);
  for (Entry& entry : node.entries) {
    ForgetPlaces(entry.key);
    ForgetPlaces(entry.value);
  }
}

// Plain words stay as they are, however YAML would split them; what begins like a list, a map or a
// quoted text is read as YAML.
std::optional<Node> ReadSetValue(std::string_view set, std::string_view value, Problems& problems) {
  if (value.empty() || std::string_view("[{\"'").find(value.front()) == std::string_view::npos) {
    Node node;
    node.kind = Node::Kind::kScalar;
    node.text = std::string(value);
    return node;
  }
  Problems in_value;
  std::optional<Node> node = LoadYaml(value, in_value);
  for (const Problem& problem : in_value.Take()) {
    problems.Error(Place(), fmt::format("--set {}: {}", set, problem.what), problem.meant);
  }
  if (node) ForgetPlaces(*node);
  return node;
}

void ApplySet(const std::string& set, Draft& draft, Problems& problems) {
  const size_t equals = set.find('=');
  if (equals == std::string::npos || equals == 0) {
    problems.Error(Place(), fmt::format("--set {}: is no assignment", set), "--set NAME=VALUE");
    return;
  }
  const std::string name = set.substr(0, equals);
  const std::optional<Node> value = ReadSetValue(set, set.substr(equals + 1), problems);
  if (!value) return;
  const auto factor = std::find_if(draft.factors.begin(), draft.factors.end(),
                                   [&](const Factor& known) { return known.name == name; });
  Node levels;
  if (value->IsList()) {
    levels = *value;
  } else if (factor != draft.factors.end()) {
    levels.kind = Node::Kind::kList;
    levels.items.push_back(*value);
  }
  const auto setting = std::find_if(draft.settings.begin(), draft.settings.end(),
                                    [&](const Setting& known) { return known.name == name; });
  draft.names_set.insert(name);
  if (levels.IsList()) {
    Factor replaced = ReadFactor(name, Place(), levels, draft, problems);
    if (setting != draft.settings.end()) draft.settings.erase(setting);
    if (factor != draft.factors.end()) {
      *factor = std::move(replaced);
    } else {
      draft.factors.push_back(std::move(replaced));
    }
    return;
  }
  const auto* definition = ResolveName(draft.workload, name, Place(), problems);
  if (definition == nullptr) return;
  auto level = ReadLevel(*definition, name, *value, problems);
  if (!level) return;
  if (setting != draft.settings.end()) {
    setting->level = *std::move(level);
  } else {
    draft.settings.push_back({.name = name, .place = Place(), .level = *std::move(level)});
  }
}

}  // namespace

void ApplySets(const std::vector<std::string>& sets, Draft& draft, Problems& problems) {
  for (const std::string& set : sets) ApplySet(set, draft, problems);
}

}  // namespace pipeyard::spec
