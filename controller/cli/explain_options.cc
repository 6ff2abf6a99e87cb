#include "controller/cli/explain_options.h"

#include <fmt/format.h>

#include <charconv>

namespace pipeyard::cli {

Result<uint64_t> NumberOption(const options::Parsed& parsed, const std::string& name, uint64_t min,
                              uint64_t max, uint64_t fallback) {
  if (!parsed.Has(name)) return fallback;
  const std::string& text = parsed.Get(name);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || value < min || value > max) {
    return InvalidArgument(
        fmt::format("--{} '{}': not a whole number of {}..{}", name, text.substr(0, 40), min, max));
  }
  return value;
}

Result<memory::InterleaveState> StateOption(const options::Parsed& parsed) {
  const memory::InterleaveState fresh;
  PIPEYARD_ASSIGN_OR_RETURN(const uint64_t prev,
                            NumberOption(parsed, "prev", 0, numa::kMaxNodes - 1, fresh.prev));
  PIPEYARD_ASSIGN_OR_RETURN(const uint64_t carry,
                            NumberOption(parsed, "carry", 0, 255, fresh.carry));
  return memory::InterleaveState{.prev = static_cast<uint8_t>(prev),
                                 .carry = static_cast<uint8_t>(carry)};
}

}  // namespace pipeyard::cli
