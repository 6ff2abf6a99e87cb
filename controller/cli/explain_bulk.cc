#include "controller/cli/explain_bulk.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "controller/cli/explain_options.h"
#include "controller/report/table.h"

namespace pipeyard::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxPages = uint64_t{1} << 40;

std::map<numa::NodeId, uint64_t> PerNode(const BulkAnswer& answer) {
  std::map<numa::NodeId, uint64_t> pages;
  for (const memory::BulkCall& call : answer.calls) pages[call.node] += call.pages;
  return pages;
}

Json StateJson(memory::InterleaveState state) {
  return {{"prev", state.prev}, {"carry", state.carry}};
}

std::string Pages(uint64_t pages) { return pages == 1 ? "1 page" : fmt::format("{} pages", pages); }

}  // namespace

Result<BulkQuestion> ReadBulkQuestion(const options::Parsed& parsed) {
  BulkQuestion question;
  if (!parsed.Has("weights"))
    return InvalidArgument("--weights is missing: NODE=WEIGHT,.. such as --weights 0=3,1=1");
  Result<memory::NodeWeights> weights = memory::ParseNodeWeights(parsed.Get("weights"));
  if (!weights.ok()) return weights.status().WithContext("--weights");
  question.weights = *weights;
  if (!parsed.Has("pages"))
    return InvalidArgument("--pages is missing: how many pages are wanted, such as --pages 64");
  PIPEYARD_ASSIGN_OR_RETURN(question.pages, NumberOption(parsed, "pages", 0, kMaxPages, 0));
  PIPEYARD_ASSIGN_OR_RETURN(question.start, StateOption(parsed));
  Result<memory::BulkAlgorithm> algorithm = memory::ParseBulkAlgorithm(parsed.Get("algorithm"));
  if (!algorithm.ok()) return algorithm.status().WithContext("--algorithm");
  question.algorithm = *algorithm;
  if (question.algorithm == memory::BulkAlgorithm::kSingleStep &&
      question.pages > kMaxExplainedSteps) {
    return InvalidArgument(
        fmt::format("--pages {}: single-step makes a call for each page and prints at most {}; "
                    "use fewer pages or another --algorithm",
                    question.pages, kMaxExplainedSteps));
  }
  return question;
}

BulkAnswer AnswerBulk(const BulkQuestion& question) {
  const memory::NodeWeights& weights = question.weights;
  BulkAnswer answer;
  answer.end = question.start;
  memory::ForEachBulkCall(question.algorithm, weights.nodes, weights.weights, answer.end,
                          question.pages, [&](numa::NodeId node, uint64_t pages) {
                            answer.calls.push_back({.node = node, .pages = pages});
                            return true;
                          });
  answer.end_canonical = memory::Canonical(weights.nodes, weights.weights, answer.end);
  return answer;
}

std::string BulkJson(const BulkQuestion& question, const BulkAnswer& answer) {
  Json json = {{"schema", "pipeyard.explain_bulk/v1"},
               {"algorithm", memory::BulkAlgorithmName(question.algorithm)},
               {"calls", Json::array()},
               {"per_node", Json::object()}};
  for (const memory::BulkCall& call : answer.calls)
    json["calls"].push_back(Json::array({call.node, call.pages}));
  for (const auto& [node, pages] : PerNode(answer)) json["per_node"][std::to_string(node)] = pages;
  json["end"] = StateJson(answer.end);
  json["end_canonical"] = StateJson(answer.end_canonical);
  return json.dump(2) + "\n";
}

std::string BulkText(const BulkQuestion& question, const BulkAnswer& answer) {
  const memory::NodeWeights& weights = question.weights;
  std::string text =
      fmt::format("{} of {}", memory::BulkAlgorithmName(question.algorithm), Pages(question.pages));
  const memory::InterleaveState start = question.start;
  if (start.carry > 0 && weights.nodes.Contains(start.prev)) {
    text += fmt::format(", {} of which node {} still has to give\n", start.carry, start.prev);
  } else {
    text += fmt::format(", beginning at node {}\n", memory::NextNode(weights.nodes, start.prev));
  }

  report::Table calls({{"call", report::Align::kRight},
                       {"node", report::Align::kRight},
                       {"pages", report::Align::kRight}});
  int number = 0;
  for (const memory::BulkCall& call : answer.calls)
    calls.Row({std::to_string(++number), std::to_string(call.node), std::to_string(call.pages)});
  if (!calls.empty()) text += "\n" + calls.Render(/*use_colour=*/false);

  const std::map<numa::NodeId, uint64_t> per_node = PerNode(answer);
  report::Table nodes({{"node", report::Align::kRight},
                       {"weight", report::Align::kRight},
                       {"pages", report::Align::kRight}});
  for (const numa::NodeId node : weights.nodes.Nodes()) {
    const auto pages = per_node.find(node);
    nodes.Row({std::to_string(node), std::to_string(weights.weights[node]),
               std::to_string(pages == per_node.end() ? 0 : pages->second)});
  }
  text += "\n" + nodes.Render(/*use_colour=*/false);
  text += fmt::format("\nends at prev {}, carry {}: the next {} from node {}\n", answer.end.prev,
                      answer.end.carry,
                      answer.end_canonical.carry == 1 ? std::string("page comes")
                                                      : Pages(answer.end_canonical.carry) + " come",
                      answer.end_canonical.prev);
  return text;
}

}  // namespace pipeyard::cli
