#include "proto/session/messages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "proto/session/session_testing.h"

namespace pipeyard::session {
namespace {

TEST(Messages, WellFormedOnesPass) {
  v1::AgentMessage accepted;
  accepted.mutable_accepted()->set_attempt_id(TestId(1));
  v1::AgentMessage refused;
  refused.mutable_refused()->set_attempt_id(TestId(1));
  refused.mutable_refused()->set_reason(v1::Refused::REASON_BUSY);
  v1::AgentMessage heartbeat;
  *heartbeat.mutable_heartbeat()->add_held() = TestHeld(1);
  v1::AgentMessage progress;
  progress.mutable_progress();
  for (const v1::AgentMessage& message :
       {Wrap(TestHello()), Wrap(TestFrame(1, 1, false)), Wrap(TestFrame(1, 9, true)), accepted,
        refused, heartbeat, progress}) {
    EXPECT_EQ(ValidateAgentMessage(message), Status::Ok()) << KindOf(message);
  }
  v1::ControllerMessage hello_refused;
  hello_refused.mutable_hello_refused()->set_reason(v1::HelloRefused::REASON_RETIRED);
  v1::ControllerMessage ack;
  ack.mutable_ack()->set_attempt_id(TestId(1));
  ack.mutable_ack()->set_through(1);
  v1::ControllerMessage cancel;
  cancel.mutable_cancel()->set_attempt_id(TestId(1));
  for (const v1::ControllerMessage& message :
       {Wrap(TestWelcome()), Wrap(TestAssign(1)), hello_refused, ack, cancel}) {
    EXPECT_EQ(ValidateControllerMessage(message), Status::Ok()) << KindOf(message);
  }
}

TEST(Messages, AnotherProtocolVersionPassesWhateverElseItHolds) {
  v1::AgentMessage hello;
  hello.mutable_hello()->set_protocol_version(2);
  v1::ControllerMessage welcome;
  welcome.mutable_welcome()->set_protocol_version(2);

  EXPECT_TRUE(ValidateAgentMessage(hello).ok());
  EXPECT_TRUE(ValidateControllerMessage(welcome).ok());
}

template <typename Message>
struct BadCase {
  const char* expected;  // beginning of the message
  std::function<void(Message&)> spoil;
};

TEST(Messages, MalformedHellosAreNamed) {
  const BadCase<v1::Hello> cases[] = {
      {"hello.protocol_version: missing", [](auto& m) { m.clear_protocol_version(); }},
      {"hello.agent_id: not a UUID", [](auto& m) { m.clear_agent_id(); }},
      {"hello.agent_id: not a UUID", [](auto& m) { m.set_agent_id("../../etc/passwd"); }},
      {"hello.agent_id: not a UUID",
       [](auto& m) { m.set_agent_id("01A00000-0000-7000-8000-000000000001"); }},
      {"hello.boot_id: not a UUID", [](auto& m) { m.set_boot_id("1"); }},
      {"hello.instance_id: not a UUID", [](auto& m) { m.clear_instance_id(); }},
      {"hello.name: not 1 to 253", [](auto& m) { m.clear_name(); }},
      {"hello.name: not 1 to 253", [](auto& m) { m.set_name("a/b"); }},
      {"hello.name: not 1 to 253", [](auto& m) { m.set_name("-a"); }},
      {"hello.name: not 1 to 253", [](auto& m) { m.set_name("a."); }},
      {"hello.name: not 1 to 253", [](auto& m) { m.set_name("a\x1b[31m"); }},
      {"hello.name: not 1 to 253", [](auto& m) { m.set_name(std::string(254, 'a')); }},
      {"hello.agent_version: missing", [](auto& m) { m.clear_agent_version(); }},
      {"hello.agent_version: holds a control", [](auto& m) { m.set_agent_version("1\n"); }},
      {"hello.agent_version: holds a control", [](auto& m) { m.set_agent_version("\xC2\x9B"); }},
      {"facts.distances: neither", [](auto& m) { m.mutable_facts()->add_distances(20); }},
      {"facts.nodes.id: negative",
       [](auto& m) { m.mutable_facts()->mutable_nodes(0)->set_id(-1); }},
      {"facts (bytes): 5000 is more",
       [](auto& m) { m.mutable_facts()->set_cpu_model(std::string(5000, 'x')); }},
      {"facts.more: a name: missing",
       [](auto& m) { (*m.mutable_facts()->mutable_more())[""] = "x"; }},
      {"hello.capabilities: missing", [](auto& m) { m.add_capabilities(""); }},
      {"held.phase: unknown value 0", [](auto& m) { (*m.add_held() = TestHeld(1)).clear_phase(); }},
  };
  for (const auto& [expected, spoil] : cases) {
    v1::Hello hello = TestHello();
    spoil(hello);

    const Status status = ValidateAgentMessage(Wrap(hello));

    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << expected;
    EXPECT_TRUE(status.message().starts_with(expected)) << status.message() << " != " << expected;
  }
}

TEST(Messages, MalformedFramesAreNamed) {
  const double kNan = std::nan("");
  const double kInfinity = std::numeric_limits<double>::infinity();
  const BadCase<v1::Frame> cases[] = {
      {"frame.store_id: not a UUID", [](auto& m) { m.clear_store_id(); }},
      {"frame.attempt_id: not a UUID", [](auto& m) { m.set_attempt_id("x"); }},
      {"frame.sequence: 0 is not in 1..", [](auto& m) { m.set_sequence(0); }},
      {"frame.sequence: 18446744073709551615 is",
       [](auto& m) { m.set_sequence(std::numeric_limits<uint64_t>::max()); }},
      {"frame.end: is in the final frame", [](auto& m) { m.set_is_final(false); }},
      {"frame.end: is in the final frame", [](auto& m) { m.clear_end(); }},
      {"frame.end.outcome: unknown value 0", [](auto& m) { m.mutable_end()->clear_outcome(); }},
      {"frame.end.outcome: unknown value 77",
       [](auto& m) { m.mutable_end()->set_outcome(static_cast<v1::Outcome>(77)); }},
      {"frame.end.outcome: lost is",
       [](auto& m) { m.mutable_end()->set_outcome(v1::OUTCOME_LOST); }},
      {"frame.end.reason_code: an ok attempt",
       [](auto& m) { m.mutable_end()->set_reason_code("killed"); }},
      {"frame.end.reason_code: missing",
       [](auto& m) { m.mutable_end()->set_outcome(v1::OUTCOME_FAILED); }},
      {"frame.end.reason_code: missing, or not",
       [](auto& m) {
         m.mutable_end()->set_outcome(v1::OUTCOME_FAILED);
         m.mutable_end()->set_reason_code("Killed by 9");
       }},
      {"frame.end.reason_text (bytes): 4097",
       [](auto& m) { m.mutable_end()->set_reason_text(std::string(4097, 'x')); }},
      {"frame.end.elapsed_ns: negative", [](auto& m) { m.mutable_end()->set_elapsed_ns(-1); }},
      {"frame.end.boot_id: not a UUID", [](auto& m) { m.mutable_end()->clear_boot_id(); }},
      {"frame.metrics.name: missing", [](auto& m) { m.mutable_metrics(0)->clear_name(); }},
      {"frame.metrics.unit: missing", [](auto& m) { m.mutable_metrics(0)->clear_unit(); }},
      {"frame.metrics.reducer: missing", [](auto& m) { m.mutable_metrics(0)->clear_reducer(); }},
      {"frame.metrics.better: unknown", [](auto& m) { m.mutable_metrics(0)->clear_better(); }},
      {"frame.metrics: the value of throughput is not finite",
       [=](auto& m) { m.mutable_metrics(0)->set_value(kNan); }},
      {"frame.metrics: the value of throughput is not finite",
       [=](auto& m) { m.mutable_metrics(0)->set_value(-kInfinity); }},
      {"frame.metrics.absent_reason: missing",
       [](auto& m) { m.mutable_metrics(0)->clear_value(); }},
      {"frame.counters.name: missing", [](auto& m) { m.mutable_counters(0)->clear_name(); }},
      {"frame.histograms: index and count",
       [](auto& m) { m.mutable_histograms(0)->add_index(99); }},
      {"frame.histograms.index: not strictly",
       [](auto& m) { m.mutable_histograms(0)->set_index(1, 3); }},
      {"frame.placements: pages: negative",
       [](auto& m) { (*m.mutable_placements(0)->mutable_pages_per_node())[0] = -1; }},
      {"frame.placements: a node: negative",
       [](auto& m) { (*m.mutable_placements(0)->mutable_pages_per_node())[-1] = 1; }},
      {"frame.placements.evidence: missing",
       [](auto& m) { m.mutable_placements(0)->clear_evidence(); }},
      {"frame.self_checks.name: missing", [](auto& m) { m.add_self_checks(); }},
      {"frame.resolved.name: missing", [](auto& m) { m.add_resolved(); }},
      {"frame.outputs.stream: missing", [](auto& m) { m.add_outputs(); }},
      {"frame.inert_switches: missing", [](auto& m) { m.add_inert_switches(""); }},
  };
  for (const auto& [expected, spoil] : cases) {
    v1::Frame frame = TestFrame(1, 2, true);
    spoil(frame);

    const Status status = ValidateAgentMessage(Wrap(frame));

    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << expected;
    EXPECT_TRUE(status.message().starts_with(expected)) << status.message() << " != " << expected;
  }
}

TEST(Messages, OtherMalformedAgentMessagesAreNamed) {
  const BadCase<v1::AgentMessage> cases[] = {
      {"a message of no kind", [](auto&) {}},
      {"accepted.attempt_id: not a UUID", [](auto& m) { m.mutable_accepted(); }},
      {"refused.attempt_id: not a UUID", [](auto& m) { m.mutable_refused(); }},
      {"refused.reason: unknown value 0",
       [](auto& m) { m.mutable_refused()->set_attempt_id(TestId(1)); }},
      {"refused.reason: unknown value 9",
       [](auto& m) {
         m.mutable_refused()->set_attempt_id(TestId(1));
         m.mutable_refused()->set_reason(static_cast<v1::Refused::Reason>(9));
       }},
      {"refused.text (bytes)",
       [](auto& m) {
         m.mutable_refused()->set_attempt_id(TestId(1));
         m.mutable_refused()->set_reason(v1::Refused::REASON_DISK);
         m.mutable_refused()->set_text(std::string(5000, 'x'));
       }},
      {"progress.text (bytes)",
       [](auto& m) { m.mutable_progress()->set_text(std::string(5000, 'x')); }},
      {"held.attempt_id: not a UUID", [](auto& m) { m.mutable_heartbeat()->add_held(); }},
      {"held.running_ns: negative",
       [](auto& m) { (*m.mutable_heartbeat()->add_held() = TestHeld(1)).set_running_ns(-1); }},
      {"held.spooled_through: ",
       [](auto& m) {
         (*m.mutable_heartbeat()->add_held() = TestHeld(1)).set_spooled_through(1ULL << 60);
       }},
      {"held: 1025 is more than 1024",
       [](auto& m) {
         for (int i = 0; i < 1025; ++i) *m.mutable_heartbeat()->add_held() = TestHeld(1);
       }},
  };
  for (const auto& [expected, spoil] : cases) {
    v1::AgentMessage message;
    spoil(message);

    const Status status = ValidateAgentMessage(message);

    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << expected;
    EXPECT_TRUE(status.message().starts_with(expected)) << status.message() << " != " << expected;
  }
}

TEST(Messages, MalformedControllerMessagesAreNamed) {
  const BadCase<v1::ControllerMessage> cases[] = {
      {"a message of no kind", [](auto& m) { m.Clear(); }},
      {"welcome.protocol_version: missing", [](auto& m) { m.mutable_welcome(); }},
      {"welcome.store_id: not a UUID",
       [](auto& m) { (*m.mutable_welcome() = TestWelcome()).clear_store_id(); }},
      {"welcome.heartbeat_interval_ns: not in 10ms to 10m",
       [](auto& m) { (*m.mutable_welcome() = TestWelcome()).set_heartbeat_interval_ns(0); }},
      {"welcome.heartbeat_interval_ns: not in",
       [](auto& m) { (*m.mutable_welcome() = TestWelcome()).set_heartbeat_interval_ns(-1); }},
      {"welcome.max_unacked_frames: not in",
       [](auto& m) { (*m.mutable_welcome() = TestWelcome()).clear_max_unacked_frames(); }},
      {"welcome.max_unacked_frames: not in",
       [](auto& m) { (*m.mutable_welcome() = TestWelcome()).set_max_unacked_frames(1 << 30); }},
      {"welcome.lease_ns: negative",
       [](auto& m) { (*m.mutable_welcome() = TestWelcome()).set_lease_ns(-1); }},
      {"hello_refused.reason: unknown value 0", [](auto& m) { m.mutable_hello_refused(); }},
      {"assign.attempt_id: not a UUID", [](auto& m) { m.mutable_assign()->clear_attempt_id(); }},
      {"assign.run_id: not a UUID", [](auto& m) { m.mutable_assign()->set_run_id("latest"); }},
      {"assign.trial_timeout_ns: not positive",
       [](auto& m) { m.mutable_assign()->set_trial_timeout_ns(0); }},
      {"assign.variant.workload: missing", [](auto& m) { m.mutable_assign()->clear_variant(); }},
      {"assign.variant.settings: writers is out of order",
       [](auto& m) { m.mutable_assign()->mutable_variant()->mutable_settings(0)->set_name("x"); }},
      {"assign.variant.settings: writers is out of order",
       [](auto& m) {
         m.mutable_assign()->mutable_variant()->mutable_settings(0)->set_name("writers");
       }},
      {"assign.variant.settings: readers has no value",
       [](auto& m) { m.mutable_assign()->mutable_variant()->mutable_settings(0)->clear_value(); }},
      {"ack.attempt_id: not a UUID", [](auto& m) { m.mutable_ack(); }},
      {"ack.through: 0 is not in", [](auto& m) { m.mutable_ack()->set_attempt_id(TestId(1)); }},
      {"cancel.attempt_id: not a UUID", [](auto& m) { m.mutable_cancel(); }},
  };
  for (const auto& [expected, spoil] : cases) {
    v1::ControllerMessage message = Wrap(TestAssign(1));
    spoil(message);

    const Status status = ValidateControllerMessage(message);

    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << expected;
    EXPECT_TRUE(status.message().starts_with(expected)) << status.message() << " != " << expected;
  }
}

TEST(Messages, OnesThatAreTooLargeAreToldApart) {
  v1::Frame frame = TestFrame(1, 1, false);
  frame.mutable_outputs(0)->set_data(std::string(kMaxMessageBytes, 'x'));

  EXPECT_EQ(ValidateFrame(frame).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ValidateAgentMessage(Wrap(frame)).code(), StatusCode::kResourceExhausted);
}

TEST(Messages, EveryFrameThatIsValidFitsIntoAMessage) {
  v1::Frame frame = TestFrame(1, 1, false);
  std::string* const data = frame.mutable_outputs(0)->mutable_data();
  data->assign(kMaxMessageBytes - 1000, 'x');
  while (ValidateFrame(frame).ok()) {
    ASSERT_EQ(ValidateAgentMessage(Wrap(frame)), Status::Ok()) << data->size();
    data->push_back('x');
  }
}

TEST(Messages, ReasonCodesAreLowerCaseWords) {
  for (const char* code : {"killed", "agent_restarted", "a", "e-2"}) {
    EXPECT_TRUE(IsReasonCode(code)) << code;
  }
  for (const char* code : {"", "Killed", "2fast", "_a", "a b", "a/b"}) {
    EXPECT_FALSE(IsReasonCode(code)) << code;
  }
}

}  // namespace
}  // namespace pipeyard::session
