#include "controller/report/testing.h"

#include <google/protobuf/text_format.h>

#include <string>

namespace pipeyard::report::testing {
namespace {

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  if (!google::protobuf::TextFormat::ParseFromString(text, &message)) message.Clear();
  return message;
}

}  // namespace

v1::DiffResponse FactorDiff() {
  return Parse<v1::DiffResponse>(R"(
    a: "01900000-0000-7000-8000-00000000000a" b: "01900000-0000-7000-8000-00000000000a"
    sweep: "prealloc" factor: "engine.page_cache" baseline: "two-page"
    rows { host: "vera" variant: "writers=1;readers=5" metric: "throughput" unit: "B/s"
      better: DIRECTION_HIGHER a_label: "two-page" b_label: "prealloc"
      a { n: 6 median: 1.132e9 boots: 1 mad: 4.1e6 } b { n: 6 median: 1.195e9 boots: 1 mad: 3.8e6 }
      effect { kind: "ratio" value: 1.0556 ci95_low: 1.041 ci95_high: 1.068 ci90_low: 1.044 ci90_high: 1.066 }
      p: 0.03125 min_p: 0.03125 mde: 0.021 verdict: "improved" test: "signed-rank" min_change: 0.02
      counters { name: "pages_allocated_locked" unit: "count" a: 412000 b: 0 }
      counters { name: "pages_allocated_outside" unit: "count" a: 0 b: 409000 }
      counters { name: "mutex_hold" unit: "ns" a: 1830 b: 410 }
      counters { name: "pages_allocated" unit: "count" a: 412000 b: 412100 } }
    rows { host: "vera" variant: "writers=1;readers=5" metric: "latency_p50" unit: "ns"
      better: DIRECTION_LOWER a_label: "two-page" b_label: "prealloc"
      a { n: 6 median: 55786 boots: 1 } b { n: 6 median: 51000 boots: 1 }
      effect { kind: "ratio" value: 0.914 ci95_low: 0.9 ci95_high: 0.93 ci90_low: 0.9 ci90_high: 0.925 }
      p: 0.03125 min_p: 0.03125 verdict: "improved" test: "signed-rank" min_change: 0.02 }
    rows { host: "vera" variant: "writers=1;readers=5" metric: "latency_max" unit: "ns"
      better: DIRECTION_LOWER a_label: "two-page" b_label: "prealloc"
      a { n: 6 median: 4e6 boots: 1 } b { n: 6 median: 4.4e6 boots: 1 }
      effect { kind: "ratio" value: 1.1 ci95_low: 0.5 ci95_high: 2.1 ci90_low: 0.6 ci90_high: 1.9 }
      p: 0.4375 min_p: 0.03125 mde: 0.9 verdict: "inconclusive" reason: "noisy" test: "signed-rank"
      min_change: 0.02 need_more: 9994 }
    rows { host: "rack2" variant: "writers=1;readers=5" metric: "throughput" unit: "B/s"
      better: DIRECTION_HIGHER a_label: "two-page" b_label: "prealloc"
      a { n: 5 median: 9.11e8 boots: 1 mad: 2e6 } b { n: 5 median: 8.02e8 boots: 1 mad: 2e6 }
      effect { kind: "ratio" value: 0.88 ci90_low: 0.87 ci90_high: 0.89 }
      p: 0.0625 min_p: 0.0625 verdict: "inconclusive" reason: "insufficient-samples" test: "signed-rank"
      min_change: 0.02 need_more: 1 dropped_pairs: 1 void_attempts: 2 failed_attempts: 1 }
    rows { host: "rack2" variant: "writers=5;readers=5" metric: "throughput" unit: "B/s"
      better: DIRECTION_HIGHER a_label: "two-page" b_label: "prealloc"
      a { n: 6 median: 9.11e8 boots: 1 mad: 2e6 } b { n: 6 median: 8.02e8 boots: 1 mad: 2e6 }
      effect { kind: "ratio" value: 0.88 ci95_low: 0.86 ci95_high: 0.9 ci90_low: 0.87 ci90_high: 0.89 }
      p: 0.03125 min_p: 0.03125 mde: 0.01 verdict: "regressed" test: "signed-rank" min_change: 0.02 }
    rows { host: "rack2" variant: "writers=9;readers=5" metric: "throughput" unit: "B/s"
      better: DIRECTION_HIGHER a_label: "two-page" b_label: "prealloc"
      a { n: 6 median: 9.11e8 boots: 1 mad: 2e6 } b { n: 6 median: 9.12e8 boots: 1 mad: 2e6 }
      effect { kind: "ratio" value: 1.001 ci95_low: 0.997 ci95_high: 1.004 ci90_low: 0.998 ci90_high: 1.003 }
      p: 0.6875 min_p: 0.03125 mde: 0.008 verdict: "unchanged" test: "signed-rank" min_change: 0.02 }
    references { host: "vera" variant: "target=kernel;writers=1;readers=5" metric: "throughput" unit: "B/s"
      better: DIRECTION_HIGHER side { n: 6 median: 1.81e9 boots: 1 mad: 6e6 } }
    references { host: "vera" variant: "target=kernel;writers=1;readers=5" metric: "latency_mean" unit: "ns"
      better: DIRECTION_LOWER side { n: 6 median: 36200 boots: 1 mad: 400 } }
    references { host: "vera" variant: "target=kernel;writers=1;readers=5" metric: "latency_p999" unit: "ns"
      better: DIRECTION_LOWER side { n: 2 median: 1.2e6 boots: 1 mad: 1e5 } }
    warnings: "rack2, writers=1;readers=5: pairs dropped, one side has no value: block 4"
    tests: 5 expected_false_positives: 0.25 exit_status: 1)");
}

v1::DiffResponse EmulatedDiff() {
  return Parse<v1::DiffResponse>(R"(
    a: "01900000-0000-7000-8000-00000000000a" b: "01900000-0000-7000-8000-00000000000a"
    sweep: "placement" factor: "engine.metadata_placement" baseline: "any-node"
    rows { host: "vera" variant: "nodes=1" metric: "throughput" unit: "B/s"
      better: DIRECTION_HIGHER a_label: "any-node" b_label: "policy-node"
      a { n: 6 median: 1.1e9 boots: 1 mad: 4e6 } b { n: 6 median: 1.1e9 boots: 1 mad: 4e6 }
      verdict: "inert" reason: "engine.metadata_placement" test: "signed-rank" min_change: 0.02
      emulated: true modelled: "remote_access=120ns"
      counters { name: "remote_access" unit: "ns" a: 0 b: 120000 } }
    rows { host: "vera" variant: "nodes=1" metric: "latency_p50" unit: "ns"
      better: DIRECTION_LOWER a_label: "any-node" b_label: "policy-node"
      a { n: 6 median: 55786 boots: 1 } b { n: 6 median: 55786 boots: 1 }
      verdict: "inert" reason: "engine.metadata_placement" test: "signed-rank" min_change: 0.02
      emulated: true modelled: "remote_access=120ns" }
    rows { host: "vera" variant: "nodes=2" metric: "throughput" unit: "B/s"
      better: DIRECTION_HIGHER a_label: "any-node" b_label: "policy-node"
      a { n: 6 median: 1.0e9 boots: 1 mad: 4e6 } b { n: 6 median: 1.2e9 boots: 1 mad: 4e6 }
      effect { kind: "ratio" value: 1.2 ci95_low: 1.19 ci95_high: 1.21 ci90_low: 1.19 ci90_high: 1.21 }
      p: 0.03125 min_p: 0.03125 mde: 0.02 verdict: "improved" test: "signed-rank" min_change: 0.02
      emulated: true modelled: "remote_access=120ns" }
    rows { host: "vera" variant: "nodes=2" metric: "remote_objects" unit: "count"
      better: DIRECTION_LOWER a_label: "any-node" b_label: "policy-node"
      a { n: 6 median: 400 boots: 1 mad: 4 } b { n: 6 median: 1 boots: 1 mad: 0 }
      effect { kind: "shift" value: -399 ci95_low: -401 ci95_high: -390 ci90_low: -400 ci90_high: -391 }
      p: 0.03125 min_p: 0.03125 mde: 0.02 verdict: "improved" test: "signed-rank" min_change: 0.02
      emulated: true modelled: "remote_access=120ns" }
    references { host: "vera" variant: "target=kernel;nodes=1" metric: "throughput" unit: "B/s"
      better: DIRECTION_HIGHER side { n: 6 median: 1.81e9 boots: 1 mad: 6e6 } }
    references { host: "vera" variant: "nodes=4" metric: "latency_mean" unit: "ns"
      better: DIRECTION_LOWER side { n: 6 median: 36200 boots: 1 mad: 400 } modelled: "remote_access=120ns" }
    tests: 2 expected_false_positives: 0.1 exit_status: 0)");
}

v1::DiffResponse RunsDiff() {
  return Parse<v1::DiffResponse>(R"(
    a: "01900000-0000-7000-8000-00000000000a" b: "01900000-ffff-7000-8000-00000000000b"
    sweep: "prealloc"
    rows { host: "vera" variant: "writers=1;engine.page_cache=prealloc" metric: "throughput" unit: "B/s"
      better: DIRECTION_HIGHER a_label: "01900000-0000" b_label: "01900000-ffff"
      a { n: 6 median: 1.132e9 boots: 1 mad: 0 } b { n: 6 median: 1.195e9 boots: 1 mad: 0 }
      effect { kind: "ratio" value: 1.0556 }
      p: 1 min_p: 1 verdict: "inconclusive" reason: "too-few-boots" test: "mann-whitney/boots"
      min_change: 0.02 need_more: 3 }
    rows { host: "vera" variant: "writers=2;engine.page_cache=prealloc" metric: "throughput" unit: "B/s"
      better: DIRECTION_HIGHER a_label: "01900000-0000" b_label: "01900000-ffff"
      a { n: 6 median: 1.4e9 boots: 1 mad: 1e6 } b { n: 0 }
      verdict: "missing" test: "mann-whitney" min_change: 0.02 }
    rows { host: "vera" variant: "writers=2;engine.page_cache=prealloc" metric: "drift" unit: "count"
      better: DIRECTION_NONE a_label: "01900000-0000" b_label: "01900000-ffff"
      a { n: 6 median: 0 boots: 1 mad: 0 } b { n: 6 median: 5 boots: 1 mad: 0 }
      effect { kind: "shift" value: 5 ci95_low: 5 ci95_high: 5 ci90_low: 5 ci90_high: 5 }
      p: 0.002164502164502164 min_p: 0.002164502164502164 verdict: "changed" test: "mann-whitney"
      min_change: 0.02 }
    tests: 1 expected_false_positives: 0.05 exit_status: 3)");
}

v1::DiffRow StatRow() {
  return Parse<v1::DiffRow>(R"(
    better: DIRECTION_LOWER a_label: "old.txt" b_label: "new.txt"
    a { n: 10 median: 1718 mad: 11 } b { n: 10 median: 1422.5 mad: 6.5 }
    effect { kind: "ratio" value: 0.82660816635111 ci95_low: 0.8195008705745792
             ci95_high: 0.8336262448740477 ci90_low: 0.82 ci90_high: 0.833 }
    p: 1.082508822446903e-05 min_p: 1.082508822446903e-05 mde: 0.0127 verdict: "improved"
    test: "mann-whitney" min_change: 0.02)");
}

v1::Run SomeRun() {
  return Parse<v1::Run>(R"(
    summary { run_id: "01900000-0000-7000-8000-00000000000a" sweep: "prealloc" state: "finished"
      created_utc_ns: 1709210096000000000 ended_utc_ns: 1709210196000000000 hosts: 1 variants: 2
      trials: 4 trials_done: 3 note: "after reboot" labels { key: "ticket" value: "MM-123" } }
    sweep_yaml: "sweep: prealloc\n" order_seed: 42 exit_status: 6
    compare_factor: "engine.page_cache" compare_baseline: "two-page"
    cells { host: "vera" host_id: "01800000-0000-7000-8000-000000000001" variant_id: "0123456789abcdef"
      variant_text: "engine.page_cache=two-page" state: "complete"
      settings { workload: "transfer" workload_version: 1 target: "engine"
        settings { name: "duration" value { integer: 10000000000 } }
        settings { name: "engine.page_cache" value { text: "two-page" } }
        settings { name: "engine.topology" value { json: "{\"nodes\":[]}" } }
        settings { name: "half" value { number: 0.5 } }
        settings { name: "on" value { flag: true } } }
      trials { index: 1 block: 1 state: "done"
        attempts { attempt_id: "01900000-0000-7000-8000-0000000000a1" number: 1 outcome: "void"
          reason: "interference: steal 4% past 1%" elapsed_ns: 11200000000 boot_id: "b1" }
        attempts { attempt_id: "01900000-0000-7000-8000-0000000000a2" number: 2 outcome: "ok"
          elapsed_ns: 11100000000 boot_id: "b1"
          metrics { name: "throughput" unit: "B/s" better: DIRECTION_HIGHER reducer: "rate" value: 1.132e9 }
          metrics { name: "latency_p999" unit: "ns" better: DIRECTION_LOWER reducer: "p99.9"
                    absent_reason: "too-few-operations" }
          counters { name: "pages_allocated_locked" unit: "count" value: 412000 }
          placements { memory: "message-buffers" evidence: "move_pages"
                       pages_per_node { key: 1 value: 3 } pages_per_node { key: 0 value: 32 } }
          self_checks { name: "closed-loop-latency" passed: false expected: 5.1e4 measured: 5.9e4 tolerance: 0.05 } } }
      trials { index: 2 block: 2 state: "done"
        attempts { attempt_id: "01900000-0000-7000-8000-0000000000a3" number: 1 outcome: "ok"
          elapsed_ns: 11100000000 boot_id: "b1" } } }
    cells { host: "vera" host_id: "01800000-0000-7000-8000-000000000001" variant_id: "fedcba9876543210"
      variant_text: "engine.page_cache=prealloc" state: "missing" reason: "1 of 2 trials have a sample"
      trials { index: 1 block: 1 state: "failed"
        attempts { attempt_id: "01900000-0000-7000-8000-0000000000b1" number: 1 outcome: "failed"
          reason: "killed: worker ended by SIGKILL" elapsed_ns: 4200000 boot_id: "b1" } }
      trials { index: 2 block: 2 state: "done"
        attempts { attempt_id: "01900000-0000-7000-8000-0000000000b2" number: 1 outcome: "ok" boot_id: "b1" } } })");
}

v1::Host SomeHost() {
  return Parse<v1::Host>(R"(
    host_id: "01800000-0000-7000-8000-000000000001" name: "vera" state: "connected" boot_id: "b1"
    first_seen_utc_ns: 1709210096000000000 last_seen_utc_ns: 1709210196000000000
    labels { key: "rack" value: "a" } agent_version: "0.1.0" capabilities: "engine" capabilities: "kernel"
    facts { kernel_release: "6.18.0" machine: "x86_64" cpu_model: "Some CPU" online_cpus: 8
      memory_bytes: 17179869184 page_size_bytes: 4096 hypervisor: "kvm"
      nodes { id: 0 cpus: "0-3,8-11" memory_bytes: 8589934592 } nodes { id: 1 memory_bytes: 8589934592 }
      nodes { id: 2 cpus: "4-7" }
      distances: [10, 21, 21, 21, 10, 21, 21, 21, 10]
      more { key: "thp" value: "always" } more { key: "pipe-max-size" value: "1048576" } })");
}

spec::ReadResult SomeSweep() {
  spec::ReadResult result;
  spec::Sweep& sweep = result.sweep;
  sweep.name = "prealloc";
  sweep.workload = "transfer";
  sweep.hosts.names = {"vera"};
  sweep.compare_factor = "writers";
  sweep.compare_baseline = "1";
  sweep.seed = 7;
  sweep.labels = {{"ticket", "MM-123"}};
  sweep.min_change = {{"throughput", 0.02}};
  for (int64_t writers : {1, 2}) {
    spec::SweepVariant variant;
    const auto made = settings::MakeVariant("transfer", "kernel", {{"writers", writers}});
    if (made.ok()) variant.variant = *made;
    variant.variant_id = settings::VariantId(variant.variant);
    variant.text = "writers=" + std::to_string(writers);
    variant.arm = std::to_string(writers);
    variant.trial_timeout = Seconds(85);
    sweep.variants.push_back(variant);
  }
  result.problems.push_back({7, 23, "repetitions.min is 4", "6 are needed for a verdict", true});
  return result;
}

v1::Plan SomePlan() {
  return Parse<v1::Plan>(R"(
    problems { line: 7 column: 23 what: "repetitions.min is 4" meant: "6 are needed for a verdict" is_warning: true }
    hosts { host: "vera" cells: 18 blocks: 6 trials: 108 expected_ns: 1240000000000 is_connected: true
      not_applicable { variant_id: "0123456789abcdef" variant_text: "placement.memory=bind:1" reason: "has no node 1" } }
    hosts { host: "rack2" cells: 19 blocks: 6 trials: 114 expected_ns: 1300000000000 }
    notes: "6 blocks are needed for a verdict at 0.05; this plan has 6")");
}

}  // namespace pipeyard::report::testing
