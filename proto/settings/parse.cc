#include "proto/settings/parse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

#include "base/units.h"
#include "base/utf8.h"
#include "proto/settings/structure.h"

namespace pipeyard::settings {
namespace {

// Longest word of a setting; a variant's text and a table's cell stay readable.
constexpr size_t kMaxTextBytes = 256;

std::string Shortened(std::string_view text) {
  constexpr size_t kShown = 60;
  if (text.size() <= kShown) return std::string(text);
  return std::string(FirstBytes(text, kShown)) + "...";
}

std::string Range(const Definition& definition) {
  const std::string low = FormatValue(definition, definition.min);
  if (definition.max == INT64_MAX) return fmt::format("at least {} was meant", low);
  return fmt::format("{} to {} was meant", low, FormatValue(definition, definition.max));
}

Status CheckRange(const Definition& definition, int64_t value) {
  if (value >= definition.min && value <= definition.max) return Status::Ok();
  const std::string shown = value < 0 ? fmt::format("{}", value) : FormatValue(definition, value);
  return InvalidArgument(fmt::format("{} is out of range; {}", shown, Range(definition)));
}

Status CheckChoice(const Definition& definition, std::string_view word) {
  for (const std::string_view choice : definition.choices) {
    if (choice == word) return Status::Ok();
  }
  return InvalidArgument(fmt::format("'{}' is not one of its values; one of {} was meant",
                                     Shortened(word), fmt::join(definition.choices, ", ")));
}

// Words become lines of a canonical text and parts of "a=1;b=2", so neither's separators may stand
// in them.
Status CheckText(const Definition& definition, std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return InvalidArgument(
        fmt::format("{} bytes are too long; at most {} were meant", text.size(), kMaxTextBytes));
  }
  if (FirstInvalidUtf8(text) != text.size()) return InvalidArgument("is no valid UTF-8");
  if (HoldsControl(text)) return InvalidArgument("holds a control character");
  if (text.find(';') != std::string_view::npos) {
    return InvalidArgument(fmt::format("'{}' holds a ';'", Shortened(text)));
  }
  if (!text.empty() && (text.front() == ' ' || text.back() == ' ')) {
    return InvalidArgument(fmt::format("'{}' begins or ends with a space", Shortened(text)));
  }
  return definition.check_text == nullptr ? Status::Ok() : definition.check_text(text);
}

Result<int64_t> ParseCount(std::string_view text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool is_number = stop == end && !text.empty();
  if (is_number && error == std::errc::result_out_of_range) {
    return InvalidArgument(fmt::format("'{}' is too large", Shortened(text)));
  }
  if (!is_number || error != std::errc()) {
    return InvalidArgument(
        fmt::format("'{}' is no whole number; one such as 4 was meant", Shortened(text)));
  }
  // YAML 1.1 reads 010 as 8, YAML 1.2 as 10.
  if (text.size() > 1 && (text[0] == '0' || (text[0] == '-' && text[1] == '0'))) {
    return InvalidArgument(
        fmt::format("'{}' begins with a zero; {} was meant, without it", Shortened(text), value));
  }
  return value;
}

Result<int64_t> ParseInteger(const Definition& definition, std::string_view text) {
  if (definition.kind == Kind::kCount) return ParseCount(text);
  if (!definition.zero_word.empty() && text == definition.zero_word) return int64_t{0};
  if (definition.kind == Kind::kBytes) return ParseBytes(text);
  PIPEYARD_ASSIGN_OR_RETURN(const Nanos duration, ParseDuration(text));
  return duration.count();
}

bool HoldsKind(Kind kind, const Value& value) {
  switch (kind) {
    case Kind::kFlag:
      return std::holds_alternative<bool>(value);
    case Kind::kCount:
    case Kind::kBytes:
    case Kind::kDuration:
      return std::holds_alternative<int64_t>(value);
    case Kind::kPercent:
      return std::holds_alternative<double>(value);
    case Kind::kChoice:
    case Kind::kText:
      return std::holds_alternative<std::string>(value);
    case Kind::kStructure:
      return std::holds_alternative<JsonText>(value);
  }
  return false;
}

// The shortest percentage that ParsePercent reads back to `fraction`.
std::string FormatPercent(double fraction) {
  for (int decimals = 0; decimals <= 15; ++decimals) {
    std::string text = fmt::format("{:.{}f}%", fraction * 100, decimals);
    const Result<double> back = ParsePercent(text);
    if (back.ok() && *back == fraction) return text;
  }
  return fmt::format("{}%", fraction * 100);
}

}  // namespace

Result<Value> ParseValue(const Definition& definition, std::string_view text) {
  switch (definition.kind) {
    case Kind::kFlag:
      if (text == "true") return Value(true);
      if (text == "false") return Value(false);
      return InvalidArgument(
          fmt::format("'{}' is no flag; true or false was meant", Shortened(text)));
    case Kind::kCount:
    case Kind::kBytes:
    case Kind::kDuration: {
      PIPEYARD_ASSIGN_OR_RETURN(const int64_t value, ParseInteger(definition, text));
      PIPEYARD_RETURN_IF_ERROR(CheckRange(definition, value));
      return Value(value);
    }
    case Kind::kPercent: {
      PIPEYARD_ASSIGN_OR_RETURN(const double value, ParsePercent(text));
      return Value(value);
    }
    case Kind::kChoice:
      PIPEYARD_RETURN_IF_ERROR(CheckChoice(definition, text));
      return Value(std::string(text));
    case Kind::kText:
      PIPEYARD_RETURN_IF_ERROR(CheckText(definition, text));
      return Value(std::string(text));
    case Kind::kStructure: {
      PIPEYARD_ASSIGN_OR_RETURN(JsonText json, ParseTopology(text));
      return Value(std::move(json));
    }
  }
  return Internal("a setting of no kind");
}

Status CheckValue(const Definition& definition, const Value& value) {
  if (!HoldsKind(definition.kind, value)) return InvalidArgument("holds another kind of value");
  switch (definition.kind) {
    case Kind::kFlag:
      return Status::Ok();
    case Kind::kCount:
    case Kind::kBytes:
    case Kind::kDuration:
      return CheckRange(definition, std::get<int64_t>(value));
    case Kind::kPercent: {
      const double fraction = std::get<double>(value);
      if (std::isfinite(fraction) && !std::signbit(fraction)) return Status::Ok();
      return InvalidArgument("is no percentage");
    }
    case Kind::kChoice:
      return CheckChoice(definition, std::get<std::string>(value));
    case Kind::kText:
      return CheckText(definition, std::get<std::string>(value));
    case Kind::kStructure:
      return CheckTopology(std::get<JsonText>(value).text);
  }
  return Internal("a setting of no kind");
}

std::string FormatValue(const Definition& definition, const Value& value) {
  if (!HoldsKind(definition.kind, value)) return CanonicalText(value);
  switch (definition.kind) {
    case Kind::kBytes:
    case Kind::kDuration: {
      const int64_t integer = std::get<int64_t>(value);
      if (integer == 0 && !definition.zero_word.empty()) return std::string(definition.zero_word);
      return definition.kind == Kind::kBytes ? FormatBytes(integer)
                                             : FormatDuration(Nanos(integer));
    }
    case Kind::kPercent:
      return FormatPercent(std::get<double>(value));
    case Kind::kStructure: {
      const std::string& json = std::get<JsonText>(value).text;
      // "host" without its quotes.
      if (json.size() >= 2 && json.front() == '"') return json.substr(1, json.size() - 2);
      return json;
    }
    default:
      return CanonicalText(value);
  }
}

std::optional<std::string> WhyUnsupported(const Definition& definition, const Value& value) {
  if (value == definition.default_value) return std::nullopt;
  bool is_supported = definition.is_supported;
  if (const std::string* word = std::get_if<std::string>(&value)) {
    for (const std::string_view later : definition.unsupported_choices) {
      if (*word == later) is_supported = false;
    }
  }
  if (is_supported) return std::nullopt;
  return fmt::format("'{}' is not supported yet", Shortened(FormatValue(definition, value)));
}

}  // namespace pipeyard::settings
