#include "storage/testing/fixtures.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "base/env.h"

namespace pipeyard::storage {
namespace {

v1::VariantSettings SampleSettings(const std::string& page_cache) {
  v1::VariantSettings settings;
  settings.set_workload("transfer");
  settings.set_workload_version(1);
  settings.set_target("engine");
  settings.set_variant_id(page_cache == "prealloc" ? "00000000000000aa" : "00000000000000bb");
  v1::Setting& choice = *settings.add_settings();
  choice.set_name("engine.page_cache");
  choice.mutable_value()->set_text(page_cache);
  v1::Setting& topology = *settings.add_settings();
  topology.set_name("engine.topology");
  topology.mutable_value()->set_json("{\"nodes\":[{\"cpus\":2}]}");
  v1::Setting& fraction = *settings.add_settings();
  fraction.set_name("fraction");
  fraction.mutable_value()->set_number(2.0);
  v1::Setting& flag = *settings.add_settings();
  flag.set_name("poll");
  flag.mutable_value()->set_flag(true);
  v1::Setting& writers = *settings.add_settings();
  writers.set_name("writers");
  writers.mutable_value()->set_integer(2);
  return settings;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  // Made before this object, it outlives this object also where that is static.
  static_cast<void>(PosixEnv());
  const char* root = std::getenv("TMPDIR");
  path_ = fmt::format("{}/pipeyard-store-XXXXXX", root == nullptr ? "/tmp" : root);
  if (::mkdtemp(path_.data()) == nullptr) {
    std::perror("mkdtemp");
    std::abort();
  }
}

TemporaryFolder::~TemporaryFolder() {
  const Status ignored = PosixEnv().RemoveTree(path_);
  static_cast<void>(ignored);
}

std::string SampleId(uint64_t number) {
  return fmt::format("00000000-0000-7000-8000-{:012x}", number);
}

HostRecord SampleHost(uint64_t number) {
  HostRecord host;
  host.host_id = SampleId(number);
  host.name = fmt::format("host-{}", number);
  host.boot_id = "b0000000-0000-4000-8000-000000000001";
  host.agent_version = "0.1.0";
  host.labels = {{"rack", "a"}};
  host.capabilities = {"transfer:engine", "transfer:kernel"};
  host.facts.set_kernel_release("6.1.0-18-amd64");
  host.facts.set_machine("x86_64");
  host.facts.set_cpu_model("Sample CPU");
  host.facts.set_online_cpus(2);
  host.facts.set_memory_bytes(uint64_t{8} << 30);
  v1::NumaNode& node = *host.facts.add_nodes();
  node.set_id(0);
  node.set_cpus("0-1");
  node.set_memory_bytes(uint64_t{8} << 30);
  host.facts.add_distances(10);
  host.facts.set_page_size_bytes(4096);
  (*host.facts.mutable_more())["thp"] = "always";
  host.first_seen_utc = 1000;
  host.last_seen_utc = 1000;
  return host;
}

RunRecord SampleRun(uint64_t number, uint32_t num_hosts, uint32_t num_trials) {
  RunRecord run;
  run.run_id = SampleId(number);
  run.request_id = fmt::format("request-{}", number);
  run.sweep = "prealloc";
  run.file_name = "prealloc.yaml";
  run.sweep_yaml = "sweep: prealloc\n";
  run.sets = {"writers=2", "readers=1"};
  run.note = "a note";
  run.labels = {{"ticket", "MM-123"}};
  run.priority = -1;
  run.order_kind = "blocked";
  run.order_seed = UINT64_MAX - 1;
  run.compare_factor = "engine.page_cache";
  run.compare_baseline = "two-page";
  run.host_wait_ns = 600'000'000'000;
  run.stops_host_on_crash = false;
  run.min_change = {{"throughput", 0.02}};
  run.trial_timeout_ns = {60'000'000'000, 61'000'000'000};
  run.created_utc = 2000 + static_cast<int64_t>(number);
  for (const char* page_cache : {"two-page", "prealloc"}) {
    VariantRecord variant;
    variant.variant_index = static_cast<uint32_t>(run.variants.size());
    variant.settings = SampleSettings(page_cache);
    variant.variant_id = variant.settings.variant_id();
    variant.text = fmt::format("engine.page_cache={}", page_cache);
    variant.arm = page_cache;
    run.variants.push_back(variant);
  }
  for (uint32_t host = 1; host <= num_hosts; ++host) {
    for (uint32_t variant = 0; variant < 2; ++variant) {
      CellRecord cell;
      cell.host_id = SampleId(host);
      cell.host_name = fmt::format("host-{}", host);
      cell.variant_index = variant;
      for (uint32_t trial = 1; trial <= num_trials; ++trial) {
        cell.trials.push_back({trial, trial, (trial - 1) * 2 + variant + 1, TrialState::kPending});
      }
      cell.attempts.resize(cell.trials.size());
      run.cells.push_back(cell);
    }
  }
  return run;
}

TrialKey SampleTrial(uint64_t run, uint32_t trial_index) {
  return {SampleId(run), SampleId(1), 0, trial_index};
}

AttemptRecord SampleAttempt(uint64_t number, uint32_t attempt_number) {
  AttemptRecord attempt;
  attempt.attempt_id = SampleId(number);
  attempt.number = attempt_number;
  attempt.epoch = 1;
  attempt.leased_utc = 3000;
  return attempt;
}

v1::Frame SampleFrame(uint64_t attempt, uint64_t sequence, bool is_final) {
  v1::Frame frame;
  frame.set_attempt_id(SampleId(attempt));
  frame.set_sequence(sequence);
  frame.set_is_final(is_final);
  v1::Metric& metric = *frame.add_metrics();
  metric.set_name(fmt::format("throughput_{}", sequence));
  metric.set_unit("B/s");
  metric.set_better(v1::DIRECTION_HIGHER);
  metric.set_reducer("rate");
  metric.set_value(1.5e9 + static_cast<double>(sequence));
  v1::Metric& absent = *frame.add_metrics();
  absent.set_name(fmt::format("latency_p999_{}", sequence));
  absent.set_unit("ns");
  absent.set_better(v1::DIRECTION_LOWER);
  absent.set_reducer("p999");
  absent.set_absent_reason("too-few-operations");
  v1::Counter& counter = *frame.add_counters();
  counter.set_name(fmt::format("pages_allocated_locked_{}", sequence));
  counter.set_unit("count");
  counter.set_value(-7);
  v1::Histogram& histogram = *frame.add_histograms();
  histogram.set_name("latency");
  histogram.set_unit("ns");
  histogram.add_index(5);
  histogram.add_count(3);
  histogram.set_overflow(1);
  v1::Placement& placement = *frame.add_placements();
  placement.set_memory(fmt::format("engine-pages-{}", sequence));
  placement.set_evidence("move_pages");
  (*placement.mutable_pages_per_node())[0] = 10;
  (*placement.mutable_pages_per_node())[1] = 20;
  v1::SelfCheck& check = *frame.add_self_checks();
  check.set_name(fmt::format("closed-loop-latency-{}", sequence));
  check.set_passed(true);
  check.set_expected(1);
  check.set_measured(1.01);
  check.set_tolerance(0.05);
  v1::ResolvedValue& resolved = *frame.add_resolved();
  resolved.set_name(fmt::format("writers-{}", sequence));
  resolved.set_as_written("50%cpus");
  resolved.set_resolved("1");
  v1::Output& output = *frame.add_outputs();
  output.set_stream("stderr");
  output.set_data(std::string("a\0b\xff", 4));
  frame.add_inert_switches(fmt::format("engine.interleave_bulk_{}", sequence));
  if (is_final) {
    v1::AttemptEnd& end = *frame.mutable_end();
    end.set_outcome(v1::OUTCOME_OK);
    end.set_elapsed_ns(11'000'000'000);
    end.set_agent_started_utc_ns(4000);
    end.set_agent_ended_utc_ns(5000);
    end.set_boot_id("b0000000-0000-4000-8000-000000000001");
    end.set_emulated(true);
  }
  return frame;
}

}  // namespace pipeyard::storage
