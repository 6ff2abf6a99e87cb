#include "proto/settings/value.h"

#include <fmt/format.h>

namespace pipeyard::settings {

std::string CanonicalText(const Value& value) {
  struct Writer {
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(int64_t integer) const { return fmt::format("{}", integer); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const JsonText& json) const { return json.text; }
  };
  return std::visit(Writer(), value);
}

}  // namespace pipeyard::settings
