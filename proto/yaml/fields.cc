#include "proto/yaml/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "base/utf8.h"
#include "proto/settings/parse.h"

namespace pipeyard::yaml {

using settings::Definition;
using settings::Kind;
using settings::Value;

void CheckDuplicateKeys(const Node& map, std::string_view path, Problems& problems) {
  std::unordered_map<std::string_view, Place> first;
  for (const Entry& entry : map.entries) {
    const auto [at, is_new] = first.emplace(entry.key.text, entry.key.place);
    if (is_new) continue;
    const std::string where = path.empty() ? "" : fmt::format("{}: ", path);
    problems.Error(entry.key.place, fmt::format("{}duplicate key '{}'", where, entry.key.text),
                   fmt::format("it is first given in line {}", at->second.line));
  }
}

std::optional<std::string> ScalarText(const Node& node, std::string_view about,
                                      Problems& problems) {
  if (node.IsScalar()) return node.text;
  if (node.kind == Node::Kind::kNull) {
    problems.Error(node.place, fmt::format("{}: has no value", about),
                   "a value, in quotes if it is an empty text or the word null");
  } else {
    problems.Error(node.place, fmt::format("{}: {} stands here", about, Describe(node)),
                   "one value");
  }
  return std::nullopt;
}

namespace {

// Labels, names and patterns stand in tables and on terminals.
std::optional<std::string> PlainText(const Node& node, std::string_view about, Problems& problems) {
  constexpr size_t kMaxTextBytes = 1024;
  std::optional<std::string> text = ScalarText(node, about, problems);
  if (!text) return std::nullopt;
  const bool has_control = HoldsControl(*text);
  if (text->size() <= kMaxTextBytes && !has_control) return text;
  problems.Error(node.place,
                 fmt::format("{}: {}", about,
                             has_control ? "holds a line break or another control character"
                                         : fmt::format("{} bytes are too long", text->size())),
                 fmt::format("one line of at most {} bytes", kMaxTextBytes));
  return std::nullopt;
}

}  // namespace

Fields::Fields(const Node& node, std::string path, Problems& problems)
    : node_(node), path_(std::move(path)), problems_(problems) {
  if (node.IsMap()) {
    CheckDuplicateKeys(node, path_, problems);
  } else if (node.kind != Node::Kind::kNull) {
    const std::string about = path_.empty() ? "the file" : path_;
    problems.Error(node.place, fmt::format("{}: {} stands here", about, Describe(node)),
                   "a map of keys and values");
  }
}

const Node* Fields::Find(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
  for (const Entry& entry : node_.entries) {
    if (entry.key.text == key) {
      return entry.value.kind == Node::Kind::kNull ? nullptr : &entry.value;
    }
  }
  return nullptr;
}

std::optional<Value> Fields::Read(std::string_view key, const Definition& definition) {
  const Node* const node = Find(key);
  if (node == nullptr) return std::nullopt;
  const std::optional<std::string> text = ScalarText(*node, PathOf(key), problems_);
  if (!text) return std::nullopt;
  Result<Value> value = settings::ParseValue(definition, *text);
  if (value.ok()) return *std::move(value);
  problems_.Error(node->place, PathOf(key), value.status());
  return std::nullopt;
}

std::optional<std::string> Fields::Text(std::string_view key) {
  const Node* const node = Find(key);
  if (node == nullptr) return std::nullopt;
  return PlainText(*node, PathOf(key), problems_);
}

std::optional<int64_t> Fields::Count(std::string_view key, int64_t min, int64_t max) {
  const auto value = Read(key, {.kind = Kind::kCount, .min = min, .max = max});
  if (!value) return std::nullopt;
  return std::get<int64_t>(*value);
}

std::optional<Nanos> Fields::Duration(std::string_view key, Nanos min, Nanos max) {
  const auto value = Read(key, {.kind = Kind::kDuration, .min = min.count(), .max = max.count()});
  if (!value) return std::nullopt;
  return Nanos(std::get<int64_t>(*value));
}

std::optional<double> Fields::Percent(std::string_view key) {
  const std::optional<Value> value = Read(key, {.kind = Kind::kPercent});
  if (!value) return std::nullopt;
  return std::get<double>(*value);
}

std::optional<std::string> Fields::Choice(std::string_view key,
                                          std::span<const std::string_view> choices) {
  const std::optional<Value> value = Read(key, {.kind = Kind::kChoice, .choices = choices});
  if (!value) return std::nullopt;
  return std::get<std::string>(*value);
}

std::vector<std::string> Fields::TextList(std::string_view key) {
  const Node* const node = Find(key);
  if (node == nullptr) return {};
  if (!node->IsList()) {
    problems_.Error(node->place, fmt::format("{}: {} stands here", PathOf(key), Describe(*node)),
                    "a list, such as [a, b]");
    return {};
  }
  std::vector<std::string> texts;
  for (const Node& item : node->items) {
    if (auto text = PlainText(item, PathOf(key), problems_)) texts.push_back(*std::move(text));
  }
  return texts;
}

std::map<std::string, std::string> Fields::TextMap(std::string_view key) {
  const Node* const node = Find(key);
  if (node == nullptr) return {};
  if (!node->IsMap()) {
    problems_.Error(node->place, fmt::format("{}: {} stands here", PathOf(key), Describe(*node)),
                    "a map, such as { name: value }");
    return {};
  }
  CheckDuplicateKeys(*node, PathOf(key), problems_);
  std::map<std::string, std::string> texts;
  for (const Entry& entry : node->entries) {
    const std::string path = fmt::format("{}.{}", PathOf(key), entry.key.text);
    const auto name = PlainText(entry.key, fmt::format("{}: a key", PathOf(key)), problems_);
    auto text = PlainText(entry.value, path, problems_);
    if (name && text) texts.emplace(entry.key.text, *std::move(text));
  }
  return texts;
}

void Fields::NotSupported(std::string_view key, std::string_view meant) {
  for (const Entry& entry : node_.entries) {
    if (entry.key.text != key) continue;
    problems_.Error(entry.key.place, fmt::format("{} is not supported yet", PathOf(key)),
                    std::string(meant));
    return;
  }
}

void Fields::Finish() {
  for (const Entry& entry : node_.entries) {
    if (std::find(known_.begin(), known_.end(), entry.key.text) != known_.end()) continue;
    const std::string_view nearest = settings::NearestName(entry.key.text, known_);
    const std::string where = path_.empty() ? "" : fmt::format("{}: ", path_);
    problems_.Error(entry.key.place, fmt::format("{}unknown key '{}'", where, entry.key.text),
                    nearest.empty() ? fmt::format("one of {}", fmt::join(known_, ", "))
                                    : fmt::format("did you mean '{}'?", nearest));
  }
}

std::string Fields::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

}  // namespace pipeyard::yaml
