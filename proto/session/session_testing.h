// Valid messages and ids for the tests of this room; each test changes what it is about.
#pragma once

#include <fmt/format.h>

#include <string>

#include "pipeyard/v1/agent.pb.h"
#include "proto/session/messages.h"

namespace pipeyard::session {

// A UUID that ends in `n`, 0..999.
inline std::string TestId(int n) {
  return fmt::format("01a00000-0000-7000-8000-000000000{:03}", n);
}

inline const std::string kTestStore = TestId(900);

inline v1::HeldAttempt TestHeld(int attempt) {
  v1::HeldAttempt held;
  held.set_attempt_id(TestId(attempt));
  held.set_store_id(kTestStore);
  held.set_phase(v1::ATTEMPT_PHASE_SPOOLED);
  held.set_running_ns(5);
  held.set_spooled_through(1);
  return held;
}

inline v1::Hello TestHello(int agent = 1, const std::string& name = "host-1") {
  v1::Hello hello;
  hello.set_protocol_version(kProtocolVersion);
  hello.set_agent_id(TestId(agent));
  hello.set_name(name);
  hello.set_boot_id(TestId(800 + agent));
  hello.set_instance_id(TestId(700 + agent));
  hello.set_agent_version("1.2.3");
  hello.mutable_facts()->set_kernel_release("6.1.0");
  hello.mutable_facts()->add_nodes()->set_cpus("0-1");
  hello.mutable_facts()->add_distances(10);
  (*hello.mutable_facts()->mutable_more())["thp"] = "always";
  hello.add_capabilities("transfer:kernel");
  return hello;
}

inline v1::Frame TestFrame(int attempt, uint64_t sequence, bool is_final) {
  v1::Frame frame;
  frame.set_store_id(kTestStore);
  frame.set_attempt_id(TestId(attempt));
  frame.set_sequence(sequence);
  v1::Metric* metric = frame.add_metrics();
  metric->set_name("throughput");
  metric->set_unit("B/s");
  metric->set_reducer("rate");
  metric->set_better(v1::DIRECTION_HIGHER);
  metric->set_value(1e9);
  v1::Counter* counter = frame.add_counters();
  counter->set_name("pages");
  counter->set_unit("count");
  v1::Histogram* histogram = frame.add_histograms();
  histogram->set_name("latency");
  histogram->set_unit("ns");
  for (const int index : {3, 4, 9}) {
    histogram->add_index(index);
    histogram->add_count(1);
  }
  v1::Placement* placement = frame.add_placements();
  placement->set_memory("message-buffers");
  placement->set_evidence("move_pages");
  (*placement->mutable_pages_per_node())[0] = 12;
  frame.add_self_checks()->set_name("closed-loop-latency");
  frame.add_resolved()->set_name("writers");
  frame.add_outputs()->set_stream("stdout");
  frame.add_inert_switches("engine.interleave_bulk");
  frame.set_is_final(is_final);
  if (is_final) {
    frame.mutable_end()->set_outcome(v1::OUTCOME_OK);
    frame.mutable_end()->set_boot_id(TestId(801));
  }
  return frame;
}

inline v1::Welcome TestWelcome() {
  v1::Welcome welcome;
  welcome.set_protocol_version(kProtocolVersion);
  welcome.set_store_id(kTestStore);
  welcome.set_epoch(7);
  welcome.set_heartbeat_interval_ns(Seconds(10).count());
  welcome.set_lease_ns(Seconds(600).count());
  welcome.set_max_unacked_frames(3);
  return welcome;
}

inline v1::Assign TestAssign(int attempt) {
  v1::Assign assign;
  assign.set_attempt_id(TestId(attempt));
  assign.set_store_id(kTestStore);
  assign.set_epoch(7);
  assign.set_run_id(TestId(600));
  assign.set_trial_name("host-1/0123456789abcdef/1");
  assign.set_trial_timeout_ns(Seconds(60).count());
  assign.mutable_variant()->set_workload("transfer");
  assign.mutable_variant()->set_target("kernel");
  assign.mutable_variant()->set_variant_id("0123456789abcdef");
  v1::Setting* setting = assign.mutable_variant()->add_settings();
  setting->set_name("readers");
  setting->mutable_value()->set_integer(1);
  setting = assign.mutable_variant()->add_settings();
  setting->set_name("writers");
  setting->mutable_value()->set_integer(2);
  return assign;
}

inline v1::AgentMessage Wrap(v1::Hello hello) {
  v1::AgentMessage message;
  *message.mutable_hello() = std::move(hello);
  return message;
}

inline v1::AgentMessage Wrap(v1::Frame frame) {
  v1::AgentMessage message;
  *message.mutable_frame() = std::move(frame);
  return message;
}

inline v1::ControllerMessage Wrap(v1::Welcome welcome) {
  v1::ControllerMessage message;
  *message.mutable_welcome() = std::move(welcome);
  return message;
}

inline v1::ControllerMessage Wrap(v1::Assign assign) {
  v1::ControllerMessage message;
  *message.mutable_assign() = std::move(assign);
  return message;
}

}  // namespace pipeyard::session
