#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "proto/settings/definition.h"
#include "proto/settings/parse.h"
#include "proto/settings/testing/golden.h"

namespace pipeyard::settings {
namespace {

std::string KindName(Kind kind) {
  switch (kind) {
    case Kind::kFlag:
      return "flag";
    case Kind::kCount:
      return "count";
    case Kind::kBytes:
      return "size";
    case Kind::kDuration:
      return "duration";
    case Kind::kPercent:
      return "percent";
    case Kind::kChoice:
      return "choice";
    case Kind::kText:
      return "text";
    case Kind::kStructure:
      return "structure";
  }
  return "?";
}

// Identity of variants depends on names, kinds and defaults: a line of this listing that a release
// carried never changes.
TEST(Catalog, NamesKindsAndDefaultsAreThoseReleased) {
  std::string listing;
  for (const WorkloadDefinition& workload : Workloads()) {
    listing += fmt::format("workload {} version={} targets={}\n", workload.name, workload.version,
                           fmt::join(workload.targets, ","));
  }
  for (const Definition& definition : Definitions()) {
    listing += fmt::format("{} workloads={} kind={} default={}\n", definition.name,
                           definition.workloads.empty()
                               ? "*"
                               : fmt::format("{}", fmt::join(definition.workloads, ",")),
                           KindName(definition.kind), CanonicalText(definition.default_value));
  }

  testing::ExpectGolden("proto/settings/testdata/catalog.golden", listing);
}

TEST(Catalog, EveryDefaultIsLegalAndSupported) {
  for (const Definition& definition : Definitions()) {
    SCOPED_TRACE(definition.name);
    EXPECT_EQ(CheckValue(definition, definition.default_value), Status::Ok());
    EXPECT_EQ(WhyUnsupported(definition, definition.default_value), std::nullopt);
    EXPECT_FALSE(definition.help.empty());
  }
}

TEST(Catalog, ThereIsOneDefinitionOfANameInAWorkload) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const WorkloadDefinition& workload : Workloads()) {
    for (const Definition& definition : Definitions()) {
      const auto& of = definition.workloads;
      if (!of.empty() && std::find(of.begin(), of.end(), workload.name) == of.end()) continue;
      EXPECT_TRUE(seen.emplace(workload.name, definition.name).second)
          << workload.name << " " << definition.name;
      EXPECT_EQ(FindDefinition(workload.name, definition.name), &definition);
    }
  }
}

TEST(Catalog, EveryChoiceThatIsUnsupportedIsAChoice) {
  for (const Definition& definition : Definitions()) {
    for (const std::string_view later : definition.unsupported_choices) {
      EXPECT_NE(std::find(definition.choices.begin(), definition.choices.end(), later),
                definition.choices.end())
          << definition.name << " " << later;
    }
  }
}

TEST(Catalog, ThePageCachesOfThisVersionAreTwoPageAndPrealloc) {
  const Definition& cache = *FindDefinition("transfer", "engine.page_cache");

  std::vector<std::string> supported;
  for (const std::string_view choice : cache.choices) {
    if (!WhyUnsupported(cache, std::string(choice))) supported.emplace_back(choice);
  }

  EXPECT_EQ(supported, (std::vector<std::string>{"two-page", "prealloc"}));
}

TEST(Catalog, ParametersBelongToTheirWorkloads) {
  EXPECT_NE(FindDefinition("transfer", "writers"), nullptr);
  EXPECT_EQ(FindDefinition("messaging", "writers"), nullptr);
  EXPECT_NE(FindDefinition("transfer", "message_bytes"),
            FindDefinition("messaging", "message_bytes"));
  EXPECT_EQ(FindDefinition("transfer", "engine.page_cache"),
            FindDefinition("messaging", "engine.page_cache"));
  EXPECT_EQ(FindDefinition("nope", "writers"), nullptr);
}

TEST(Catalog, EngineSettingsApplyToTheEngineOnly) {
  for (const Definition& definition : Definitions()) {
    EXPECT_EQ(AppliesTo(definition, "kernel"), !definition.name.starts_with("engine."))
        << definition.name;
  }
}

TEST(Catalog, MetricsOfTransferHaveUnitsAndDirections) {
  std::string listing;
  for (const MetricDefinition& metric : Metrics("transfer")) {
    listing += fmt::format("{} {} {} {}{}\n", metric.name, metric.unit, metric.better,
                           metric.reducer, metric.may_be_absent ? " may be absent" : "");
  }

  EXPECT_EQ(listing,
            "throughput B/s higher rate\n"
            "latency_mean ns lower mean\n"
            "latency_p50 ns lower p50 may be absent\n"
            "latency_p90 ns lower p90 may be absent\n"
            "latency_p99 ns lower p99 may be absent\n"
            "latency_p999 ns lower p999 may be absent\n"
            "latency_max ns lower max\n");
}

TEST(NearestName, FindsTyposAndNothingFarAway) {
  constexpr std::array<std::string_view, 4> kKnown{"transfer", "messaging", "writers", "fds"};
  const std::vector<std::pair<std::string, std::string>> cases = {{"transfr", "transfer"},
                                                                  {"tranfser", "transfer"},
                                                                  {"writer", "writers"},
                                                                  {"fsd", "fds"},
                                                                  {"nope", ""},
                                                                  {"x", ""},
                                                                  {"", ""},
                                                                  {"writers", "writers"},
                                                                  {std::string(5000, 'w'), ""}};
  for (const auto& [given, nearest] : cases) {
    EXPECT_EQ(NearestName(given, kKnown), nearest) << given.substr(0, 20);
  }
}

}  // namespace
}  // namespace pipeyard::settings
