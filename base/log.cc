#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>

#include "base/printable.h"

namespace pipeyard {
namespace {

std::atomic<LogLevel> least_level{LogLevel::kInfo};

spdlog::logger& Logger() {
  // Never destroyed: threads may log while the process ends.
  static spdlog::logger* const logger = [] {
    auto* made = new spdlog::logger("pipeyard", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %L %v", spdlog::pattern_time_type::utc);
    made->set_level(spdlog::level::debug);
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void SetLogLevel(LogLevel level) { least_level.store(level, std::memory_order_relaxed); }

bool IsLogged(LogLevel level) { return level >= least_level.load(std::memory_order_relaxed); }

void LogMessage(LogLevel level, std::string_view room, std::string_view message) {
  Logger().log(ToSpdlog(level), fmt::format("{}: {}", room, EscapeControls(message)));
}

}  // namespace pipeyard
