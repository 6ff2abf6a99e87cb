#include "workloads/pipe/differential/operation.h"

#include <charconv>
#include <optional>

namespace pipeyard::pipe::differential {
namespace {

// What stands behind the word.
enum class Form { kFile, kFileValue, kFileSwitch, kFileFile, kFileSet, kNothing, kCreate };

struct Word {
  Action action;
  std::string_view text;
  Form form;
};

constexpr Word kWords[] = {
    {Action::kCreate, "create", Form::kCreate},
    {Action::kOpenReader, "open-reader", Form::kFileFile},
    {Action::kOpenWriter, "open-writer", Form::kFileFile},
    {Action::kClose, "close", Form::kFile},
    {Action::kWrite, "write", Form::kFileValue},
    {Action::kWriteQuietly, "write-quietly", Form::kFileValue},
    {Action::kRead, "read", Form::kFileValue},
    {Action::kSetNonblocking, "nonblocking", Form::kFileSwitch},
    {Action::kSetPacket, "packet", Form::kFileSwitch},
    {Action::kResize, "resize", Form::kFileValue},
    {Action::kCapacity, "capacity", Form::kFile},
    {Action::kQueuedBytes, "queued", Form::kFile},
    {Action::kPoll, "poll", Form::kFileSet},
    {Action::kWaitPoll, "wait-poll", Form::kFileSet},
    {Action::kWatch, "watch", Form::kFile},
    {Action::kTakeReady, "take-ready", Form::kNothing},
    {Action::kInterrupt, "interrupt", Form::kNothing},
};
static_assert(std::size(kWords) == kNumActions);

std::string FileName(uint32_t file) { return "f" + std::to_string(file); }

// The words of one line, without its comment.
std::vector<std::string_view> SplitLine(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<uint32_t> ParseNumber(std::string_view text, uint32_t max) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > max) return std::nullopt;
  return value;
}

// "f3" with prefix 'f'.
std::optional<uint32_t> ParseNumbered(char prefix, std::string_view text, uint32_t count) {
  if (text.empty() || text[0] != prefix) return std::nullopt;
  return ParseNumber(text.substr(1), count - 1);
}

std::optional<uint32_t> ParseSwitch(std::string_view text) {
  if (text == "on") return 1;
  if (text == "off") return 0;
  return std::nullopt;
}

// What was expected, where the words do not fit.
std::optional<std::string> ParseArguments(const std::vector<std::string_view>& words, size_t at,
                                          Form form, Operation& operation) {
  const auto next = [&]() -> std::string_view { return at < words.size() ? words[at++] : ""; };
  const auto take_file = [&]() -> std::optional<uint32_t> {
    return ParseNumbered('f', next(), kMaxFiles);
  };
  if (form == Form::kFileSet) {
    while (at < words.size()) {
      const std::optional<uint32_t> file = take_file();
      if (!file) return "files f0 to f" + std::to_string(kMaxFiles - 1);
      operation.value |= FileSet{1} << *file;
    }
    return std::nullopt;
  }
  if (form != Form::kNothing) {
    const std::optional<uint32_t> file = take_file();
    if (!file) return "a file f0 to f" + std::to_string(kMaxFiles - 1);
    operation.file = static_cast<uint8_t>(*file);
  }
  std::optional<uint32_t> value = 0;
  if (form == Form::kFileValue) {
    value = ParseNumber(next(), UINT32_MAX);
    if (!value) return "a number of bytes";
  } else if (form == Form::kFileSwitch) {
    value = ParseSwitch(next());
    if (!value) return "on or off";
  } else if (form == Form::kFileFile) {
    value = take_file();
    if (!value) return "the new file";
  } else if (form == Form::kCreate) {
    const std::optional<uint32_t> second = take_file();
    if (!second || *second != operation.file + 1u) return "two files that follow each other";
    if (at < words.size() && next() != "nonblocking") return "nonblocking or nothing";
    if (words.back() == "nonblocking") value = 1;
  }
  operation.value = *value;
  if (at != words.size()) return "nothing more than that";
  return std::nullopt;
}

}  // namespace

std::string FormatOperation(const Operation& operation) {
  const Word& word = kWords[static_cast<size_t>(operation.action)];
  std::string text = operation.actor != 0 ? "a" + std::to_string(operation.actor) + " " : "";
  text += word.text;
  switch (word.form) {
    case Form::kNothing:
      break;
    case Form::kFile:
      text += " " + FileName(operation.file);
      break;
    case Form::kFileValue:
      text += " " + FileName(operation.file) + " " + std::to_string(operation.value);
      break;
    case Form::kFileSwitch:
      text += " " + FileName(operation.file) + (operation.value != 0 ? " on" : " off");
      break;
    case Form::kFileFile:
      text += " " + FileName(operation.file) + " " + FileName(operation.value);
      break;
    case Form::kFileSet:
      for (uint32_t file = 0; file < kMaxFiles; ++file) {
        if ((operation.value >> file & 1) != 0) text += " " + FileName(file);
      }
      break;
    case Form::kCreate:
      text += " " + FileName(operation.file) + " " + FileName(operation.file + 1u);
      if (operation.value != 0) text += " nonblocking";
      break;
  }
  return text;
}

std::string FormatProgram(const Program& program) {
  std::string text;
  for (const auto& [name, value] : program.settings) {
    text += "setting " + name + " " + value + "\n";
  }
  for (const Operation& operation : program.operations) text += FormatOperation(operation) + "\n";
  return text;
}

Result<Program> ParseProgram(std::string_view text) {
  Program program;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = SplitLine(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    const auto fault = [&](const std::string& expected) {
      return InvalidArgument("line " + std::to_string(number) + ": expected " + expected);
    };
    if (words[0] == "setting") {
      if (words.size() != 3) return fault("setting NAME VALUE");
      program.settings.emplace_back(words[1], words[2]);
      continue;
    }
    Operation operation;
    size_t at = 0;
    if (const auto actor = ParseNumbered('a', words[0], kMaxActors)) {
      operation.actor = static_cast<uint8_t>(*actor);
      ++at;
    }
    const Word* word = nullptr;
    for (const Word& known : kWords) {
      if (at < words.size() && known.text == words[at]) word = &known;
    }
    if (word == nullptr) return fault("an operation");
    operation.action = word->action;
    if (const auto expected = ParseArguments(words, at + 1, word->form, operation)) {
      return fault(*expected);
    }
    program.operations.push_back(operation);
  }
  return program;
}

}  // namespace pipeyard::pipe::differential
