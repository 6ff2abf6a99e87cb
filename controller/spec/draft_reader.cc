#include "controller/spec/draft_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "controller/spec/fields.h"
#include "controller/spec/names.h"
#include "controller/spec/sections.h"

namespace pipeyard::spec {
namespace {

using settings::Definition;

constexpr size_t kMaxNameBytes = 64;

// Names stand in `SWEEP~N`, in file names and in tables.
void ReadName(Fields& top, Place root, Draft& draft, Problems& problems) {
  const Node* const node = top.Find("sweep");
  if (node == nullptr) {
    problems.Error(root, "the key 'sweep' is missing", "sweep: NAME");
    return;
  }
  const auto text = ScalarText(*node, "sweep", problems);
  if (!text) return;
  constexpr std::string_view kLegal =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  const bool is_legal = !text->empty() && text->size() <= kMaxNameBytes && text->front() != '-' &&
                        text->front() != '.' &&
                        text->find_first_not_of(kLegal) == std::string::npos && *text != "latest";
  if (!is_legal) {
    problems.Error(
        node->place, fmt::format("sweep: '{:.80}' is no name", *text),
        fmt::format("letters, digits, - _ and ., at most {}, and not latest", kMaxNameBytes));
  }
  draft.sweep.name = *text;
}

void ReadWorkload(Fields& top, Place root, Draft& draft, Problems& problems) {
  const Node* const node = top.Find("workload");
  if (node == nullptr) {
    problems.Error(root, "the key 'workload' is missing", "workload: transfer");
    return;
  }
  draft.workload_place = node->place;
  const auto text = ScalarText(*node, "workload", problems);
  if (!text) return;
  draft.sweep.workload = *text;
  draft.workload = settings::FindWorkload(*text);
  if (draft.workload == nullptr) {
    std::vector<std::string_view> known;
    for (const auto& workload : settings::Workloads()) known.push_back(workload.name);
    const std::string_view nearest = settings::NearestName(*text, known);
    problems.Error(node->place, fmt::format("unknown workload '{}'", *text),
                   nearest.empty() ? fmt::format("one of {}", fmt::join(known, ", "))
                                   : fmt::format("did you mean '{}'?", nearest));
  } else if (!draft.workload->is_supported) {
    problems.Error(node->place, fmt::format("workload: '{}' is not supported yet", *text),
                   "use transfer");
  }
}

void AddSetting(const std::string& name, Place place, const Node& value, Draft& draft,
                Problems& problems) {
  const Definition* const definition = ResolveName(draft.workload, name, place, problems);
  if (definition == nullptr) return;
  auto level = ReadLevel(*definition, name, value, problems);
  if (level) draft.settings.push_back({.name = name, .place = place, .level = *std::move(level)});
}

// A key that would be known elsewhere, such as `engine.page_cache` under `parameters`.
bool IsMisplaced(const std::string& key, std::string_view prefix, Place place, Problems& problems) {
  constexpr std::array<std::array<std::string_view, 2>, 3> kSections{
      {{"engine.", "engine"}, {"placement.", "placement"}, {"knob.", "knobs"}}};
  for (const auto& [other, section] : kSections) {
    if (!key.starts_with(other)) continue;
    problems.Error(
        place,
        fmt::format("'{}' does not belong under {}", key, prefix.empty() ? "parameters" : section),
        fmt::format("'{}' under {}", key.substr(other.size()), section));
    return true;
  }
  return false;
}

void ReadSettings(Fields& top, std::string_view section, std::string_view prefix, Draft& draft,
                  Problems& problems) {
  const Node* const node = top.Find(section);
  if (node == nullptr) return;
  const Fields checked(*node, std::string(section), problems);
  if (!node->IsMap()) return;
  ReportBrokenHalves(*node, section, problems);
  for (size_t i = 0; i < node->entries.size(); ++i) {
    const Entry& entry = node->entries[i];
    if (IsBrokenHalf(*node, i) || IsMisplaced(entry.key.text, prefix, entry.key.place, problems)) {
      continue;
    }
    if (i + 1 < node->entries.size() && IsBrokenHalf(*node, i + 1)) continue;
    const std::string name = fmt::format("{}{}", prefix, entry.key.text);
    if (prefix.empty() && (name == "target" || name == "command")) {
      problems.Error(entry.key.place, fmt::format("'{}' does not belong under parameters", name),
                     fmt::format("'{}' as a key of the file", name));
      continue;
    }
    // A second value of a duplicate key is already a problem.
    if (draft.FindSetting(name) == nullptr) {
      AddSetting(name, entry.key.place, entry.value, draft, problems);
    }
  }
}

void ReadFactors(const Node* node, Draft& draft, Problems& problems) {
  if (node == nullptr) return;
  const Fields checked(*node, "factors", problems);
  if (!node->IsMap()) {
    draft.is_expandable = false;
    return;
  }
  for (const Entry& entry : node->entries) {
    if (draft.FindFactor(entry.key.text) != nullptr) continue;
    Factor factor = ReadFactor(entry.key.text, entry.key.place, entry.value, draft, problems);
    if (draft.FindSetting(factor.name) != nullptr) {
      problems.Error(factor.place, fmt::format("'{}' is both a setting and a factor", factor.name),
                     "one of the two");
    }
    draft.factors.push_back(std::move(factor));
  }
}

void ReadZip(const Node* node, Draft& draft, Problems& problems) {
  if (node == nullptr) return;
  const auto refuse = [&](const Node& at) {
    problems.Error(at.place, fmt::format("zip: {} stands here", Describe(at)),
                   "a list of lists of factors, such as [[writers, readers]]");
    draft.is_expandable = false;
  };
  if (!node->IsList()) return refuse(*node);
  for (const Node& item : node->items) {
    if (!item.IsList() || item.items.size() < 2) {
      refuse(item);
      continue;
    }
    ZipGroup group{.names = {}, .place = item.place};
    for (const Node& name : item.items) {
      if (auto text = ScalarText(name, "zip", problems)) group.names.push_back(*std::move(text));
    }
    draft.zips.push_back(std::move(group));
  }
}

void ReadExclude(const Node* node, Draft& draft, Problems& problems) {
  if (node == nullptr) return;
  if (!node->IsList()) {
    problems.Error(node->place, fmt::format("exclude: {} stands here", Describe(*node)),
                   "a list, such as [{ writers: 5, readers: 10 }]");
    return;
  }
  for (const Node& item : node->items) {
    const size_t errors_before = problems.num_errors();
    const Fields checked(item, "exclude", problems);
    if (!item.IsMap()) continue;
    ReportBrokenHalves(item, "exclude", problems);
    Exclusion exclusion{.match = {}, .place = item.place};
    for (size_t i = 0; i < item.entries.size(); ++i) {
      const Entry& entry = item.entries[i];
      if (IsBrokenHalf(item, i)) continue;
      const std::string& name = entry.key.text;
      const Definition* definition = ResolveName(draft.workload, name, entry.key.place, problems);
      if (definition == nullptr) continue;
      if (auto level = ReadLevel(*definition, name, entry.value, problems)) {
        exclusion.match.push_back({name, entry.key.place, *std::move(level)});
      }
    }
    if (item.entries.empty())
      problems.Error(item.place, "exclude: an empty map excludes everything");
    if (problems.num_errors() == errors_before) draft.exclusions.push_back(std::move(exclusion));
  }
}

void ReadCompare(const Node* node, Draft& draft, Problems& problems) {
  if (node == nullptr) return;
  Fields fields(*node, "compare", problems);
  const auto factor = fields.Text("factor");
  const auto baseline = fields.Text("baseline");
  fields.Finish();
  if (!node->IsMap()) return;
  for (const std::string_view key : {"factor", "baseline"}) {
    if (fields.Find(key) == nullptr) {
      problems.Error(node->place, fmt::format("compare: the key '{}' is missing", key),
                     "compare: { factor: NAME, baseline: LEVEL }");
    }
  }
  if (!factor || !baseline) return;
  draft.comparison = {.factor = *factor,
                      .factor_place = fields.Find("factor")->place,
                      .baseline = *baseline,
                      .baseline_place = fields.Find("baseline")->place};
}

void ReadTopSetting(Fields& top, std::string_view key, Draft& draft, Problems& problems) {
  const Node* const node = top.Find(key);
  if (node == nullptr) return;
  if (key == "target") draft.has_target_key = true;
  if (key == "command" && draft.workload != nullptr && draft.workload->name != "command") {
    problems.Error(node->place, "command: is for workload command only", "leave it out");
    return;
  }
  AddSetting(std::string(key), node->place, *node, draft, problems);
}

}  // namespace

const Factor* Draft::FindFactor(std::string_view name) const {
  const auto found = std::find_if(factors.begin(), factors.end(),
                                  [&](const Factor& factor) { return factor.name == name; });
  return found == factors.end() ? nullptr : &*found;
}

const Setting* Draft::FindSetting(std::string_view name) const {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const Setting& setting) { return setting.name == name; });
  return found == settings.end() ? nullptr : &*found;
}

Factor ReadFactor(std::string_view name, Place place, const Node& levels, Draft& draft,
                  Problems& problems) {
  const size_t errors_before = problems.num_errors();
  Factor factor{.name = std::string(name), .place = place, .levels = {}};
  const Definition* const definition = ResolveName(draft.workload, name, place, problems);
  if (!levels.IsList()) {
    problems.Error(levels.place, fmt::format("factor {}: {} stands here", name, Describe(levels)),
                   "a list of levels, such as [a, b]");
  } else if (levels.items.empty()) {
    problems.Error(place, fmt::format("factor {} has no levels", name), "at least one");
  } else {
    ReportBrokenHalves(levels, name, problems);
  }
  for (size_t i = 0; i < levels.items.size() && definition != nullptr; ++i) {
    const bool is_head = i + 1 < levels.items.size() && IsBrokenHalf(levels, i + 1);
    if (is_head || IsBrokenHalf(levels, i)) continue;
    auto level = ReadLevel(*definition, name, levels.items[i], problems);
    if (!level) continue;
    for (const Level& earlier : factor.levels) {
      if (earlier.value != level->value) continue;
      problems.Error(level->place,
                     fmt::format("factor {}: the level '{}' is there already", name, level->text));
    }
    factor.levels.push_back(*std::move(level));
  }
  if (problems.num_errors() != errors_before) draft.is_expandable = false;
  return factor;
}

Draft ReadDraft(const Node& root, const std::vector<std::string>& sets, Problems& problems) {
  Draft draft;
  Fields top(root, "", problems);
  if (!root.IsMap()) {
    draft.is_expandable = false;
    if (root.kind == Node::Kind::kNull) {
      problems.Error(root.place, "the file holds nothing", "a map of keys and values");
    }
    return draft;
  }
  ReadName(top, root.place, draft, problems);
  ReadWorkload(top, root.place, draft, problems);
  ReadTopSetting(top, "target", draft, problems);
  ReadTopSetting(top, "command", draft, problems);
  ReadSettings(top, "parameters", "", draft, problems);
  ReadSettings(top, "engine", "engine.", draft, problems);
  ReadSettings(top, "placement", "placement.", draft, problems);
  ReadSettings(top, "knobs", "knob.", draft, problems);
  ReadFactors(top.Find("factors"), draft, problems);
  ReadZip(top.Find("zip"), draft, problems);
  ReadExclude(top.Find("exclude"), draft, problems);
  ReadCompare(top.Find("compare"), draft, problems);
  ReadRunSections(top, draft, problems);
  top.Finish();
  ApplySets(sets, draft, problems);
  return draft;
}

}  // namespace pipeyard::spec
