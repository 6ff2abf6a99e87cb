// Log lines of the daemons: one line an event, on stderr, "TIME LEVEL room: message key=value".
//
// Messages end without a period. Never logged: secrets, sweep texts as a whole. The only file that
// knows spdlog is log.cc. Thread safety: thread-safe.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace pipeyard {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Default kInfo.
void SetLogLevel(LogLevel level);
bool IsLogged(LogLevel level);
void LogMessage(LogLevel level, std::string_view room, std::string_view message);

// Log(LogLevel::kInfo, "session", "agent {} attached", name)
template <typename... Args>
void Log(LogLevel level, std::string_view room, fmt::format_string<Args...> format,
         Args&&... args) {
  if (IsLogged(level)) LogMessage(level, room, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace pipeyard
