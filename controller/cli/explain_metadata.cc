#include "controller/cli/explain_metadata.h"

#include <fmt/format.h>

#include "workloads/memory/page_choice.h"

namespace pipeyard::cli {
namespace {

using memory::MetadataPlacement;
using memory::ObjectRequest;
using memory::PolicyContext;
using memory::TaskPolicy;

// Why the policy gives `node` to a slab object.
std::string PolicyReason(const memory::Policy& policy, numa::NodeId node, numa::NodeId local) {
  switch (policy.mode) {
    case numa::PolicyMode::kDefault:
      return "without a policy it is the CPU's own node";
    case numa::PolicyMode::kLocal:
      return "local is the CPU's own node";
    case numa::PolicyMode::kPreferred:
      return "it is the preferred one";
    case numa::PolicyMode::kInterleave:
      return "it is the next one of the interleaving, which moves on by one";
    case numa::PolicyMode::kWeightedInterleave:
      return "it is the next one of the weighted interleaving, which moves on by one page";
    case numa::PolicyMode::kBind:
    case numa::PolicyMode::kPreferredMany:
      return node == local ? "the policy allows the CPU's own node"
                           : "it is the nearest to the CPU that the policy names";
  }
  return "";
}

ObjectAnswer AnswerPageBlock(ObjectAnswer answer, TaskPolicy& task, const PolicyContext& context) {
  const memory::PageChoice choice = memory::ChoosePage(task, context);
  answer.asker =
      task.policy.mode == numa::PolicyMode::kDefault ? Asker::kNobody : Asker::kPageAllocator;
  answer.node = choice.node;
  answer.allowed = choice.is_first_pass ? context.allowed : choice.allowed;
  answer.why =
      "too large for a slab: the page allocator obeys the task's policy itself, and the pipe asks "
      "nobody";
  if (task.policy.mode == numa::PolicyMode::kInterleave ||
      task.policy.mode == numa::PolicyMode::kWeightedInterleave) {
    answer.why += "; interleaving moves on by one page, once";
  } else if (task.policy.mode == numa::PolicyMode::kBind) {
    answer.why += "; the binding holds on fallback too";
  }
  return answer;
}

ObjectAnswer AnswerSlab(MetadataPlacement placement, ObjectAnswer answer, TaskPolicy& task,
                        const PolicyContext& context) {
  answer.allowed = context.allowed;
  if (answer.request.node != numa::kNoNode) {
    answer.node = answer.request.node;
    const std::string reason = PolicyReason(task.policy, answer.node, context.local);
    if (answer.request.is_policy_queried) {
      answer.asker = Asker::kPipe;
      answer.why =
          fmt::format("the pipe asks the policy and names node {}: {}", answer.node, reason);
    } else {
      answer.why = fmt::format("on the node that was named for info: one question for both");
    }
    if (answer.node != context.local)
      answer.why += "; not the CPU's own node, so the CPU's list is passed over";
    return answer;
  }
  if (placement == MetadataPlacement::kStrictPolicy) {
    answer.node = memory::StrictSlabNode(task, context, context.allowed);
    if (answer.node != numa::kNoNode) {
      answer.asker = Asker::kSlabAllocator;
      answer.why = fmt::format("the slab allocator asks the policy, which says node {}: {}",
                               answer.node, PolicyReason(task.policy, answer.node, context.local));
      return answer;
    }
    answer.why = task.policy.mode == numa::PolicyMode::kDefault ? "there is no policy to ask, so: "
                 : context.allowed.Count() < 2
                     ? "there is one node only, so the policy is not asked: "
                     : "the binding allows the CPU's own node, so the policy is not asked: ";
  } else {
    answer.why = "nobody asks the policy: ";
  }
  answer.why += fmt::format(
      "whatever the CPU's list holds, refilled from node {} first; objects of any node may be in "
      "it",
      context.local);
  return answer;
}

}  // namespace

std::vector<MetadataAnswer> AnswerMetadata(const MetadataQuestion& question) {
  const std::vector<numa::NodeId> order = question.topology.FallbackOrder(question.local);
  const PolicyContext context{.local = question.local,
                              .local_order = order,
                              .allowed = question.topology.memory_nodes(),
                              .host_weights = &question.host_weights};
  std::vector<MetadataAnswer> answers;
  for (const MetadataPlacement placement : question.placements) {
    TaskPolicy task{.policy = question.policy, .state = question.start};
    MetadataAnswer answer{.placement = placement, .objects = {}, .end = {}};
    const auto add = [&](const char* object, uint64_t bytes, const ObjectRequest& request) {
      ObjectAnswer made;
      made.object = object;
      made.bytes = bytes;
      made.request = request;
      answer.objects.push_back(request.source == ObjectRequest::Source::kPageBlock
                                   ? AnswerPageBlock(std::move(made), task, context)
                                   : AnswerSlab(placement, std::move(made), task, context));
    };
    const memory::CreationRequest creation =
        memory::PlanCreation(placement, kCreationSlots, question.page_bytes, task, context);
    add("info", memory::kPipeInfoBytes, creation.info);
    add("ring at creation", kCreationSlots * memory::kSlotBytes, creation.ring);
    if (question.slots != kCreationSlots) {
      add("ring after resize", question.slots * memory::kSlotBytes,
          memory::PlanResize(placement, question.slots, question.page_bytes, task, context));
    }
    answer.end = task.state;
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace pipeyard::cli
