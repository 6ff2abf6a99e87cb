#include "controller/analysis/operand.h"

#include <fmt/format.h>

namespace pipeyard::analysis {

Result<DiffOperand> ParseDiffOperand(std::string_view text) {
  const auto malformed = [&](std::string_view what) {
    return InvalidArgument(
        fmt::format("'{}': {}; RUN, RUN@VARIANT or RUN/HOST was meant", text, what));
  };
  DiffOperand operand;
  const size_t end_of_run = text.find_first_of("@/");
  operand.run = text.substr(0, end_of_run);
  if (operand.run.empty()) return malformed("no run is named");
  if (end_of_run == std::string_view::npos) return operand;

  std::string_view rest = text.substr(end_of_run);
  if (rest.front() == '/') {
    const size_t end_of_host = rest.find('@');
    operand.host =
        rest.substr(1, end_of_host == std::string_view::npos ? end_of_host : end_of_host - 1);
    if (operand.host.empty()) return malformed("no host follows '/'");
    if (operand.host.starts_with("class:")) {
      return InvalidArgument(
          fmt::format("'{}': comparing classes of hosts is not supported yet", text));
    }
    if (end_of_host == std::string_view::npos) return operand;
    rest = rest.substr(end_of_host);
  }
  operand.variant = rest.substr(1);
  if (operand.variant.empty()) return malformed("no variant follows '@'");
  return operand;
}

}  // namespace pipeyard::analysis
