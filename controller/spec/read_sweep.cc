#include <algorithm>

#include "controller/spec/draft_reader.h"
#include "controller/spec/expand.h"
#include "controller/spec/problems.h"
#include "controller/spec/sweep.h"

namespace pipeyard::spec {

bool ReadResult::ok() const {
  return std::none_of(problems.begin(), problems.end(),
                      [](const Problem& problem) { return !problem.is_warning; });
}

ReadResult ReadSweep(std::string_view yaml, const std::vector<std::string>& sets) {
  Problems problems;
  ReadResult result;
  if (const std::optional<Node> root = LoadYaml(yaml, problems)) {
    Draft draft = ReadDraft(*root, sets, problems);
    ExpandDraft(draft, problems);
    result.sweep = std::move(draft.sweep);
  }
  result.problems = problems.Take();
  return result;
}

}  // namespace pipeyard::spec
