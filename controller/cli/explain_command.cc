#include "controller/cli/commands.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/explain_bulk.h"
#include "controller/cli/explain_metadata.h"

namespace pipeyard::cli {

int ExplainBulk(const Console& console, const options::Parsed& parsed) {
  const Result<BulkQuestion> question = ReadBulkQuestion(parsed);
  if (!question.ok()) return console.Fail(question.status());
  const BulkAnswer answer = AnswerBulk(*question);
  console.Out(console.format == Format::kJson ? BulkJson(*question, answer)
                                              : BulkText(*question, answer));
  return kDone;
}

int ExplainMetadata(const Console& console, const options::Parsed& parsed) {
  const Result<MetadataQuestion> question = ReadMetadataQuestion(parsed, numa::HostFiles());
  if (!question.ok()) {
    // Also where the machine's own files cannot be read: the command names another topology.
    console.Say(question.status().message());
    return kUsage;
  }
  const std::vector<MetadataAnswer> answers = AnswerMetadata(*question);
  console.Out(console.format == Format::kJson ? MetadataJson(*question, answers)
                                              : MetadataText(*question, answers));
  return kDone;
}

}  // namespace pipeyard::cli
