#include "controller/spec/sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "controller/spec/labels.h"

namespace pipeyard::spec {
namespace {

using Words = std::string_view;

// Fewer than 6 pairs cannot reach p < 0.05 in the two-sided signed-rank test: 2 / 2^5 = 0.0625.
constexpr int64_t kUsualRepetitions = 6;
constexpr int64_t kMaxRepetitions = 10'000;
constexpr int64_t kMaxAttempts = 100;
constexpr Nanos kLongest = Minutes(60 * 24 * 30);

void ReadHosts(const Node* node, Sweep& sweep, Problems& problems) {
  if (node == nullptr) return;
  Fields fields(*node, "hosts", problems);
  HostSelector& hosts = sweep.hosts;
  hosts.classes = fields.TextList("class");
  if (!hosts.classes.empty()) fields.NotSupported("class", "use names or labels");
  hosts.names = fields.TextList("names");
  hosts.labels = fields.TextMap("labels");
  if (const Node* excluded = fields.Find("not")) {
    Fields not_fields(*excluded, "hosts.not", problems);
    hosts.not_labels = not_fields.TextMap("labels");
    not_fields.Finish();
  }
  hosts.min_nodes = static_cast<uint32_t>(fields.Count("min_nodes", 1, 1024).value_or(1));
  fields.Finish();
}

void ReadExpect(const Node* node, Sweep& sweep, Problems& problems) {
  if (node == nullptr) return;
  Fields fields(*node, "expect", problems);
  if (auto kernel = fields.Text("kernel")) sweep.expect.emplace("kernel", *std::move(kernel));
  fields.Finish();
}

void ReadUntil(const Node* node, const Draft& draft, Fields& parent, Problems& problems) {
  if (node == nullptr) return;
  Fields fields(*node, "repetitions.until", problems);
  const std::optional<std::string> metric = fields.Text("metric");
  if (metric && draft.workload != nullptr && draft.workload->is_supported) {
    const auto metrics = settings::Metrics(draft.workload->name);
    if (std::none_of(metrics.begin(), metrics.end(),
                     [&](const auto& known) { return known.name == *metric; })) {
      problems.Error(fields.Find("metric")->place,
                     fmt::format("repetitions.until.metric: '{}' is no metric of {}", *metric,
                                 draft.workload->name));
    }
  }
  fields.Percent("half_width");
  fields.Finish();
  parent.NotSupported("until", "use min and max");
}

void ReadRepetitions(const Node* node, Draft& draft, Problems& problems) {
  if (node == nullptr) return;
  Fields fields(*node, "repetitions", problems);
  const std::optional<int64_t> min = fields.Count("min", 1, kMaxRepetitions);
  const std::optional<int64_t> max = fields.Count("max", 1, kMaxRepetitions);
  ReadUntil(fields.Find("until"), draft, fields, problems);
  fields.Finish();
  // One that is given alone draws the other with it.
  const int64_t low = min.value_or(std::min(kUsualRepetitions, max.value_or(kUsualRepetitions)));
  const int64_t high = max.value_or(min.value_or(kUsualRepetitions));
  const Place place = min ? fields.Find("min")->place : node->place;
  if (low > high) {
    problems.Error(place, fmt::format("repetitions: min {} is above max {}", low, high),
                   "min at most max");
  } else if (low < kUsualRepetitions) {
    problems.Warning(place, fmt::format("repetitions.min {} is below {}", low, kUsualRepetitions),
                     "fewer blocks cannot reach p < 0.05, so no comparison can be conclusive");
  }
  draft.sweep.repetitions_min = static_cast<uint32_t>(low);
  draft.sweep.repetitions_max = static_cast<uint32_t>(high);
}

void ReadOrder(const Node* node, Sweep& sweep, Problems& problems) {
  if (node == nullptr) return;
  constexpr std::array<Words, 3> kKinds{"blocked", "random", "listed"};
  Fields fields(*node, "order", problems);
  if (const auto kind = fields.Choice("kind", kKinds)) {
    if (*kind == "random") sweep.order = OrderKind::kRandom;
    if (*kind == "listed") sweep.order = OrderKind::kListed;
    if (*kind != "blocked") {
      problems.Error(fields.Find("kind")->place,
                     fmt::format("order.kind: '{}' is not supported yet", *kind), "use blocked");
    }
  }
  if (const Node* seed = fields.Find("seed")) {
    if (const auto text = ScalarText(*seed, "order.seed", problems)) {
      uint64_t value = 0;
      const char* const end = text->data() + text->size();
      const auto [stop, error] = std::from_chars(text->data(), end, value);
      if (error == std::errc() && stop == end) {
        sweep.seed = value;
      } else {
        problems.Error(seed->place, fmt::format("order.seed: '{}' is no seed", *text),
                       "a whole number below 2^64");
      }
    }
  }
  fields.Finish();
}

void ReadLimits(const Node* node, Draft& draft, Problems& problems) {
  if (node == nullptr) return;
  constexpr std::array<Words, 2> kOnCrash{"stop-host", "retry"};
  Fields fields(*node, "limits", problems);
  draft.trial_timeout = fields.Duration("trial_timeout", Milliseconds(1), kLongest);
  if (draft.trial_timeout) draft.trial_timeout_place = fields.Find("trial_timeout")->place;
  if (const auto attempts = fields.Count("attempts", 1, kMaxAttempts)) {
    draft.sweep.attempts_limit = static_cast<uint32_t>(*attempts);
  }
  if (const auto wait = fields.Duration("host_wait", Nanos(0), kLongest)) {
    draft.sweep.host_wait = *wait;
  }
  if (const auto on_crash = fields.Choice("on_crash", kOnCrash)) {
    draft.sweep.stops_host_on_crash = *on_crash == "stop-host";
  }
  fields.Finish();
}

void ReadMetric(const Entry& entry, Sweep& sweep, Problems& problems) {
  Fields fields(entry.value, "metrics." + entry.key.text, problems);
  if (const auto min_change = fields.Percent("min_change")) {
    sweep.min_change[entry.key.text] = *min_change;
  }
  if (const Node* absolute = fields.Find("min_change_abs")) {
    const auto text = ScalarText(*absolute, fields.PathOf("min_change_abs"), problems);
    if (text && *text != "0") fields.NotSupported("min_change_abs", "use min_change, a percentage");
  }
  fields.Finish();
}

void ReadMetrics(const Node* node, Draft& draft, Problems& problems) {
  if (node == nullptr) return;
  std::vector<Words> known;
  if (draft.workload != nullptr) {
    for (const auto& metric : settings::Metrics(draft.workload->name)) known.push_back(metric.name);
    if (!draft.workload->declares_metrics && node->IsMap()) {
      // The hosts' commands declare them.
      for (const Entry& entry : node->entries) known.push_back(entry.key.text);
    }
  }
  if (known.empty() || !node->IsMap()) {
    Fields(*node, "metrics", problems);
    return;
  }
  Fields fields(*node, "metrics", problems);
  for (const Words metric : known) fields.Find(metric);
  fields.Finish();
  for (const Entry& entry : node->entries) {
    if (std::find(known.begin(), known.end(), entry.key.text) == known.end()) continue;
    ReadMetric(entry, draft.sweep, problems);
  }
}

void ReadLabels(Fields& top, Sweep& sweep, Problems& problems) {
  sweep.labels = top.TextMap("labels");
  if (sweep.labels.size() > kMaxLabels) {
    problems.Error(top.Find("labels")->place,
                   fmt::format("labels: {} are too many", sweep.labels.size()),
                   fmt::format("at most {}", kMaxLabels));
  }
  const Node* const node = top.Find("labels");
  if (node == nullptr) return;
  for (const Entry& entry : node->entries) {
    if (!sweep.labels.contains(entry.key.text)) continue;  // reported already
    const Status checked = CheckLabel(entry.key.text, entry.value.text);
    if (!checked.ok()) problems.Error(entry.key.place, "labels", checked);
  }
}

// The sections below parse, so that what is wrong in them is told, and are refused where they ask
// for anything.

void RefuseInterference(Fields& top, Problems& problems) {
  const Node* const node = top.Find("interference");
  if (node == nullptr) return;
  Fields fields(*node, "interference", problems);
  fields.Percent("steal");
  fields.Percent("cpu_pressure");
  fields.Finish();
  if (!node->entries.empty()) top.NotSupported("interference");
}

void RefusePrepare(Fields& top, Problems& problems) {
  constexpr std::array<Words, 3> kEach{"boot", "block", "trial"};
  const Node* const node = top.Find("prepare");
  if (node == nullptr) return;
  if (!node->IsList()) {
    problems.Error(node->place, fmt::format("prepare: {} stands here", Describe(*node)),
                   "a list, such as [{ command: kbuild-clean, each: trial }]");
    return;
  }
  for (const Node& item : node->items) {
    Fields fields(item, "prepare", problems);
    fields.Text("command");
    fields.Choice("each", kEach);
    fields.Finish();
  }
  if (!node->items.empty()) top.NotSupported("prepare");
}

void RefuseNotify(Fields& top, Problems& problems) {
  const Node* const node = top.Find("notify");
  if (node == nullptr) return;
  Fields fields(*node, "notify", problems);
  const auto webhook = fields.Text("webhook");
  if (webhook && !webhook->empty()) fields.NotSupported("webhook");
  fields.Finish();
}

}  // namespace

void ReadRunSections(Fields& top, Draft& draft, Problems& problems) {
  ReadHosts(top.Find("hosts"), draft.sweep, problems);
  ReadExpect(top.Find("expect"), draft.sweep, problems);
  ReadRepetitions(top.Find("repetitions"), draft, problems);
  ReadOrder(top.Find("order"), draft.sweep, problems);
  ReadLimits(top.Find("limits"), draft, problems);
  ReadMetrics(top.Find("metrics"), draft, problems);
  ReadLabels(top, draft.sweep, problems);
  if (const auto priority = top.Count("priority", INT32_MIN, INT32_MAX)) {
    draft.sweep.priority = static_cast<int32_t>(*priority);
  }
  RefusePrepare(top, problems);
  RefuseInterference(top, problems);
  if (!top.TextList("counters").empty()) top.NotSupported("counters");
  RefuseNotify(top, problems);
}

}  // namespace pipeyard::spec
