#include "workloads/commands/document_path.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "proto/yaml/node.h"
#include "proto/yaml/problems.h"

namespace pipeyard::commands {
namespace {

using Json = nlohmann::json;

constexpr size_t kShownBytes = 60;
constexpr int kMaxDepth = 200;

Status BadPath(std::string_view path) {
  return InvalidArgument(
      fmt::format("'{}' is no path; one such as .lat.p99 or .runs[0].ops was "
                  "meant",
                  FirstBytes(path, kShownBytes)));
}

// "key" takes `"a.b"` or a bare word off `rest`.
bool TakeKey(std::string_view& rest, std::string& key) {
  if (rest.starts_with('"')) {
    const size_t end = rest.find('"', 1);
    if (end == std::string_view::npos) return false;
    key = std::string(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    return true;
  }
  const size_t end = std::min(rest.find_first_of(".["), rest.size());
  key = std::string(rest.substr(0, end));
  rest.remove_prefix(end);
  return !key.empty();
}

std::string StepText(const PathStep& step) {
  if (const auto* key = std::get_if<std::string>(&step)) return "." + *key;
  return fmt::format("[{}]", std::get<size_t>(step));
}

Status Missing(const std::vector<PathStep>& path, size_t step) {
  std::string walked;
  for (size_t i = 0; i < step; ++i) walked += StepText(path[i]);
  return NotFound(
      fmt::format("{} has no {}", walked.empty() ? "the document" : walked, StepText(path[step])));
}

// Keeps from the parser what no report looks like and would take memory without end. Brackets
// within texts do not count.
bool IsTooDeep(std::string_view json) {
  int depth = 0;
  bool is_in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (is_in_text && c == '\\') {
      ++i;
    } else if (c == '"') {
      is_in_text = !is_in_text;
    } else if (!is_in_text && (c == '[' || c == '{')) {
      if (++depth > kMaxDepth) return true;
    } else if (!is_in_text && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<std::vector<PathStep>> ParsePath(std::string_view path) {
  std::vector<PathStep> steps;
  std::string_view rest = path;
  while (!rest.empty()) {
    const char kind = rest.front();
    rest.remove_prefix(1);
    if (kind == '.') {
      std::string key;
      if (!TakeKey(rest, key)) return BadPath(path);
      steps.emplace_back(std::move(key));
    } else if (kind == '[') {
      size_t index = 0;
      const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
      if (error != std::errc() || stop == rest.data() + rest.size() || *stop != ']') {
        return BadPath(path);
      }
      rest.remove_prefix(static_cast<size_t>(stop - rest.data()) + 1);
      steps.emplace_back(index);
    } else {
      return BadPath(path);
    }
  }
  if (steps.empty()) return BadPath(path);
  return steps;
}

Result<double> NumberInJson(std::string_view text, const std::vector<PathStep>& path) {
  if (IsTooDeep(text)) {
    return InvalidArgument(fmt::format("is nested more than {} levels deep", kMaxDepth));
  }
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return InvalidArgument("is no valid JSON");
  const Json* at = &document;
  for (size_t i = 0; i < path.size(); ++i) {
    if (const auto* key = std::get_if<std::string>(&path[i])) {
      const auto found = at->is_object() ? at->find(*key) : at->end();
      if (found == at->end()) return Missing(path, i);
      at = &*found;
    } else {
      const size_t index = std::get<size_t>(path[i]);
      if (!at->is_array() || index >= at->size()) return Missing(path, i);
      at = &(*at)[index];
    }
  }
  if (!at->is_number()) {
    return OutOfRange(fmt::format("{} stands there, no number", at->type_name()));
  }
  return ParseNumber(at->dump());
}

Result<double> NumberInYaml(std::string_view text, const std::vector<PathStep>& path) {
  yaml::Problems problems;
  const std::optional<yaml::Node> document = yaml::LoadYaml(text, problems, {"document", ""});
  if (!document) {
    const std::vector<yaml::Problem> found = problems.Take();
    return InvalidArgument(found.empty() ? "is no valid YAML" : found[0].Format("the output"));
  }
  const yaml::Node* at = &*document;
  for (size_t i = 0; i < path.size(); ++i) {
    const yaml::Node* next = nullptr;
    if (const auto* key = std::get_if<std::string>(&path[i])) {
      for (const yaml::Entry& entry : at->entries) {
        if (entry.key.text == *key && next == nullptr) next = &entry.value;
      }
    } else if (const size_t index = std::get<size_t>(path[i]); index < at->items.size()) {
      next = &at->items[index];
    }
    if (next == nullptr) return Missing(path, i);
    at = next;
  }
  if (!at->IsScalar()) return OutOfRange(fmt::format("{} stands there, no number", Describe(*at)));
  return ParseNumber(at->text);
}

Result<double> ParseNumber(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool is_number = error == std::errc() && stop == end && std::isfinite(value);
  if (is_number) return value;
  return OutOfRange(fmt::format("'{}' is no number", FirstBytes(text, kShownBytes)));
}

}  // namespace pipeyard::commands
