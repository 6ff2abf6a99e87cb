#include "proto/options/config_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>

namespace pipeyard::options {
namespace {

// A flat file needs no depth; this bounds yaml-cpp's recursion on hostile input.
constexpr size_t kMaxBytes = 64 * 1024;
constexpr int kMaxBrackets = 64;

Status At(std::string_view file_name, const YAML::Mark& mark, std::string_view what) {
  return InvalidArgument(
      fmt::format("{}:{}:{}: {}", file_name, mark.line + 1, mark.column + 1, what));
}

}  // namespace

Result<std::vector<ConfigEntry>> ReadConfig(std::string_view text, std::string_view file_name) {
  if (text.size() > kMaxBytes || std::count_if(text.begin(), text.end(), [](char c) {
                                   return c == '[' || c == '{';
                                 }) > kMaxBrackets) {
    return InvalidArgument(
        fmt::format("{}:1:1: this is no configuration file: too large or too deep", file_name));
  }
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    std::vector<ConfigEntry> entries;
    if (root.IsNull()) return entries;
    if (!root.IsMap()) return At(file_name, root.Mark(), "a map of `name: value` lines was meant");
    for (const auto& pair : root) {
      const YAML::Mark mark = pair.first.Mark();
      if (!pair.first.IsScalar()) return At(file_name, mark, "a name was meant");
      ConfigEntry entry{pair.first.Scalar(),
                        {},
                        static_cast<uint32_t>(mark.line + 1),
                        static_cast<uint32_t>(mark.column + 1)};
      const auto has_same_name = [&](const ConfigEntry& other) { return other.name == entry.name; };
      if (std::any_of(entries.begin(), entries.end(), has_same_name))
        return At(file_name, mark, fmt::format("'{}' stands twice", entry.name));
      if (pair.second.IsScalar()) {
        entry.values.push_back(pair.second.Scalar());
      } else if (pair.second.IsSequence()) {
        for (const YAML::Node& item : pair.second) {
          if (!item.IsScalar()) return At(file_name, item.Mark(), "a plain value was meant");
          entry.values.push_back(item.Scalar());
        }
      } else {
        return At(file_name, mark,
                  fmt::format("'{}' takes a value or a list of values", entry.name));
      }
      entries.push_back(std::move(entry));
    }
    return entries;
  } catch (const YAML::Exception& error) {
    return At(file_name, error.mark, error.msg);
  } catch (const std::exception& error) {
    return InvalidArgument(fmt::format("{}: {}", file_name, error.what()));
  }
}

}  // namespace pipeyard::options
