// Node: a YAML document as its reader sees it: texts with their places, nothing typed, nothing
// resolved.
//
// Scalars keep their text (`no`, `08` and `1e3` are what they look like), duplicate keys are kept
// for the reader to report, and anchors, aliases, tags and second documents are problems: no
// grammar here has a use for them.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeyard::yaml {

class Problems;

// Counts from 1; 0, 0 is a place outside the file (--set).
struct Place {
  uint32_t line = 0;
  uint32_t column = 0;
};

struct Entry;

struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  Place place;
  std::string text;  // kScalar
  bool is_quoted = false;
  std::vector<Node> items;     // kList
  std::vector<Entry> entries;  // kMap, in file order

  bool IsScalar() const { return kind == Kind::kScalar; }
  bool IsList() const { return kind == Kind::kList; }
  bool IsMap() const { return kind == Kind::kMap; }
};

struct Entry {
  Node key;  // kScalar
  Node value;
};

// "a map", "a list", "'text'", "nothing": for messages.
std::string Describe(const Node& node);

// Compact JSON of the node, every leaf a string (nothing becomes "").
std::string ToJson(const Node& node);

// What kind of file is read, for messages.
struct FileKind {
  std::string_view name = "sweep";  // "one sweep a file"
  // Where its grammar is told.
  std::string_view meant = "a sweep: docs/SWEEPS.md has an example";
};

// Limits of a text: kMaxBytes, kMaxDepth levels. nullopt where there is no tree; then a problem
// says why.
inline constexpr size_t kMaxBytes = size_t{1} << 20;
inline constexpr int kMaxDepth = 64;
std::optional<Node> LoadYaml(std::string_view text, Problems& problems, const FileKind& kind = {});

}  // namespace pipeyard::yaml
