#include "controller/scheduler/testing/builders.h"

#include <fmt/format.h>

#include <map>

#include "proto/settings/definition.h"

namespace pipeyard::scheduler {

std::string TestUuid(uint32_t n) { return fmt::format("00000000-0000-7000-8000-{:012x}", n); }

spec::Sweep TestSweep(uint32_t arms, uint32_t repetitions) {
  spec::Sweep sweep;
  sweep.name = "contract";
  sweep.workload = "transfer";
  sweep.compare_factor = "writers";
  sweep.compare_baseline = "1";
  sweep.repetitions_min = repetitions;
  sweep.repetitions_max = repetitions;
  sweep.seed = 7;
  for (uint32_t arm = 1; arm <= arms; ++arm) {
    spec::SweepVariant variant;
    variant.variant =
        settings::MakeVariant("transfer", "kernel", {{"writers", int64_t{arm}}}).value();
    variant.variant_id = settings::VariantId(variant.variant);
    variant.text = fmt::format("writers={}", arm);
    variant.arm = std::to_string(arm);
    variant.trial_timeout = Seconds(60);
    sweep.variants.push_back(std::move(variant));
  }
  return sweep;
}

HostView TestHost(uint32_t n) {
  HostView host;
  host.record.host_id = TestUuid(0x1000 + n);
  host.record.name = fmt::format("host{}", n);
  host.record.boot_id = TestUuid(0x2000 + n);
  host.record.agent_version = "0.1.0";
  host.record.capabilities = {"transfer:kernel"};
  host.record.facts.set_kernel_release("6.1.0-18-amd64");
  host.record.facts.add_nodes()->set_id(0);
  host.is_connected = true;
  return host;
}

v1::Hello HelloOf(const HostView& host) {
  v1::Hello hello;
  hello.set_protocol_version(1);
  hello.set_agent_id(host.record.host_id);
  hello.set_name(host.record.name);
  hello.set_boot_id(host.record.boot_id);
  hello.set_agent_version(host.record.agent_version);
  *hello.mutable_facts() = host.record.facts;
  for (const std::string& capability : host.record.capabilities) hello.add_capabilities(capability);
  hello.set_instance_id(TestUuid(0x3000));
  return hello;
}

RunRequest TestRequest(uint32_t n) {
  RunRequest request;
  request.run_id = TestUuid(0x4000 + n);
  request.request_id = TestUuid(0x5000 + n);
  request.file_name = "contract.yaml";
  request.sweep_yaml = "sweep: contract\n";
  request.created_utc = n;
  return request;
}

std::vector<v1::Metric> TransferMetrics() {
  std::vector<v1::Metric> metrics;
  for (const settings::MetricDefinition& definition : settings::Metrics("transfer")) {
    v1::Metric& metric = metrics.emplace_back();
    metric.set_name(std::string(definition.name));
    metric.set_unit(std::string(definition.unit));
    metric.set_reducer(std::string(definition.reducer));
    metric.set_better(definition.better == "higher" ? v1::DIRECTION_HIGHER : v1::DIRECTION_LOWER);
    metric.set_value(1.5);
  }
  return metrics;
}

v1::Frame FinalFrame(const std::string& store_id, const std::string& attempt_id,
                     v1::Outcome outcome, const std::string& reason_code) {
  v1::Frame frame;
  frame.set_store_id(store_id);
  frame.set_attempt_id(attempt_id);
  frame.set_sequence(1);
  frame.set_is_final(true);
  frame.mutable_end()->set_outcome(outcome);
  frame.mutable_end()->set_reason_code(reason_code);
  if (outcome == v1::OUTCOME_OK) {
    for (v1::Metric& metric : TransferMetrics()) *frame.add_metrics() = std::move(metric);
  }
  return frame;
}

}  // namespace pipeyard::scheduler
