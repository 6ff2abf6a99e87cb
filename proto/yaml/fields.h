// Fields: reads one map of the grammar key by key, and reports what is no key of it.
//
// Every reader returns nullopt after it has reported a problem, and for a key that is absent.
// Thread safety: thread-compatible. Ownership: borrows the node and the problems.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "proto/settings/definition.h"
#include "proto/yaml/node.h"
#include "proto/yaml/problems.h"

namespace pipeyard::yaml {

class Fields {
 public:
  // `path` names the map in messages ("repetitions"; empty for the whole file). Reports a node that
  // is no map, and duplicate keys.
  Fields(const Node& node, std::string path, Problems& problems);

  // The value of `key`, or nullptr where it is absent or nothing.
  const Node* Find(std::string_view key);

  std::optional<std::string> Text(std::string_view key);
  std::optional<int64_t> Count(std::string_view key, int64_t min, int64_t max);
  std::optional<Nanos> Duration(std::string_view key, Nanos min, Nanos max);
  std::optional<double> Percent(std::string_view key);
  std::optional<std::string> Choice(std::string_view key,
                                    std::span<const std::string_view> choices);
  // Texts of a list.
  std::vector<std::string> TextList(std::string_view key);
  // A map of texts, such as labels.
  std::map<std::string, std::string> TextMap(std::string_view key);

  // Reports "KEY is not supported yet" where the key stands.
  void NotSupported(std::string_view key, std::string_view meant = {});

  // Reports every key that was not asked for. Call last.
  void Finish();

  // "repetitions.min"; "min" for the whole file.
  std::string PathOf(std::string_view key) const;

 private:
  std::optional<settings::Value> Read(std::string_view key, const settings::Definition& definition);

  const Node& node_;
  const std::string path_;
  Problems& problems_;
  std::vector<std::string_view> known_;
};

// Reports the second and later of equal keys.
void CheckDuplicateKeys(const Node& map, std::string_view path, Problems& problems);

// The text of a scalar; reports anything else. `about` names it in the message.
std::optional<std::string> ScalarText(const Node& node, std::string_view about, Problems& problems);

}  // namespace pipeyard::yaml
