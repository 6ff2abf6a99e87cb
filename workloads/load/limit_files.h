// Where Linux says what a task may still take: one-number files of /proc and of the cgroups.
//
// Thread safety: thread-safe; reads files. `root` stands before every path, for tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeyard::load {

// "" where the file cannot be read.
std::string ReadText(const std::string& path);

// What the file's first line holds; nothing where it cannot be read or holds no number ("max").
std::optional<int64_t> ReadNumber(const std::string& path);

// Folders of the cgroups that this process is held to by `controller` ("pids", "memory"): of the
// unified hierarchy and of the controller's own (version 1), each from the process's group up to
// the hierarchy's root, since a limit holds for all below.
std::vector<std::string> CgroupFolders(const std::string& root, std::string_view controller);

}  // namespace pipeyard::load
