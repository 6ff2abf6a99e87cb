#include "controller/cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>

#include "base/printable.h"
#include "controller/cli/exit_code.h"

namespace pipeyard::cli {

void Console::Out(std::string_view text) const {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void Console::Say(std::string_view text) const {
  fmt::print(stderr, "pipeyard: {}\n", EscapeControls(text));
}

void Console::SayLine(std::string_view line) const {
  fmt::print(stderr, "{}\n", EscapeControls(line));
}

int Console::Fail(const Status& status) const {
  Say(status.message());
  return ExitCodeFor(status);
}

Console MakeConsole(const options::Parsed& parsed, const options::Environment& environment,
                    SignalWatcher& signals) {
  const bool wants_no_color =
      parsed.Flag("no-color") || !environment("NO_COLOR").value_or("").empty();
  return {.controller_address = parsed.Get("controller"),
          .format = parsed.Get("output") == "json" ? Format::kJson : Format::kTable,
          .is_colored = !wants_no_color && ::isatty(STDOUT_FILENO) == 1,
          .is_interactive =
              ::isatty(STDERR_FILENO) == 1 && environment("TERM").value_or("dumb") != "dumb",
          .env = PosixEnv(),
          .signals = signals};
}

Result<std::string> ReadInput(Env& env, const std::string& path) {
  const DefaultEndingSignals interruptible;  // a terminal or a named pipe may never end
  if (path != "-") return env.ReadFile(path);
  std::string text;
  char buffer[65536];
  size_t n = 0;
  while ((n = std::fread(buffer, 1, sizeof buffer, stdin)) > 0) text.append(buffer, n);
  if (std::ferror(stdin) != 0) return Internal("read standard input failed");
  return text;
}

}  // namespace pipeyard::cli
