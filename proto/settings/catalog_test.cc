#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "base/testing/golden.h"
#include "proto/settings/definition.h"
#include "proto/settings/parse.h"

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

  pipeyard::testing::ExpectGolden(PIPEYARD_SOURCE_DIR "/proto/settings/testdata/catalog.golden",
                                  listing);
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

TEST(Catalog, EverySwitchOfTheEngineIsExecutedInEachOfItsValues) {
  for (const Definition& definition : Definitions()) {
    if (!definition.name.starts_with("engine.")) continue;
    EXPECT_TRUE(definition.is_supported) << definition.name;
    EXPECT_TRUE(definition.unsupported_choices.empty()) << definition.name;
  }
}

TEST(Catalog, ThePostedPatchOfBulkInterleaveIsNoValue) {
  const Definition& bulk = *FindDefinition("transfer", "engine.interleave_bulk");

  const Result<Value> value = ParseValue(bulk, "posted-patch");

  ASSERT_FALSE(value.ok());
  EXPECT_NE(value.status().message().find("one of split-carry, single-step, folded-carry"),
            std::string::npos)
      << value.status().message();
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

// The engine's switches, and the parameter that chooses one of its paths.
TEST(Catalog, EngineSettingsApplyToTheEngineOnly) {
  for (const Definition& definition : Definitions()) {
    const bool is_engines = definition.name.starts_with("engine.") || definition.name == "path";
    EXPECT_EQ(AppliesTo(definition, "kernel"), !is_engines) << definition.name;
    EXPECT_TRUE(AppliesTo(definition, "engine")) << definition.name;
  }
}

TEST(Catalog, MetricsOfMessagingHaveUnitsAndDirections) {
  std::string listing;
  for (const MetricDefinition& metric : Metrics("messaging")) {
    listing +=
        fmt::format("{} {} {} {}\n", metric.name, metric.unit, metric.better, metric.reducer);
  }

  EXPECT_EQ(listing, "message_rate 1/s higher rate\ntime ns lower total\n");
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

// "1 to 1024", "`threads`, *later* `processes`".
std::string ValuesOf(const Definition& definition) {
  if (definition.kind == Kind::kFlag) return "`true`, `false`";
  if (definition.kind == Kind::kChoice) {
    std::vector<std::string> words;
    for (const std::string_view choice : definition.choices) {
      const bool is_later = WhyUnsupported(definition, std::string(choice)).has_value();
      words.push_back(fmt::format("{}`{}`", is_later ? "*later* " : "", choice));
    }
    return fmt::format("{}", fmt::join(words, ", "));
  }
  if (definition.kind == Kind::kText || definition.kind == Kind::kStructure) return "";
  const std::string low = FormatValue(definition, definition.min);
  if (definition.max == INT64_MAX) return fmt::format("{} or more", low);
  return fmt::format("{} to {}", low, FormatValue(definition, definition.max));
}

std::string SettingsTable() {
  std::string table =
      "| name | of | kind | default | values | | meaning |\n|---|---|---|---|---|---|---|\n";
  for (const Definition& definition : Definitions()) {
    const std::string shown = FormatValue(definition, definition.default_value);
    const bool is_of_later_workloads =
        !definition.workloads.empty() &&
        std::none_of(definition.workloads.begin(), definition.workloads.end(),
                     [](std::string_view name) { return FindWorkload(name)->is_supported; });
    table += fmt::format(
        "| `{}` | {} | {} | {} | {} | {} | {} |\n", definition.name,
        definition.workloads.empty() ? "every workload"
                                     : fmt::format("{}", fmt::join(definition.workloads, ", ")),
        KindName(definition.kind), shown.empty() ? "absent" : fmt::format("`{}`", shown),
        ValuesOf(definition),
        is_of_later_workloads     ? "*later*"
        : definition.is_supported ? ""
                                  : "at its default",
        definition.help);
  }
  return table;
}

TEST(Docs, SettingsAreThoseOfTheCatalog) {
  const std::string path = std::string(PIPEYARD_SOURCE_DIR) + "/docs/SWEEPS.md";
  std::string text = pipeyard::testing::ReadFile(path);
  const std::string begin = "from the catalog -->\n";
  const size_t start = text.find(begin);
  const size_t end = text.find("<!-- /settings -->");
  ASSERT_NE(start, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const size_t table = start + begin.size();

  if (pipeyard::testing::UpdatesGolden()) {
    text.replace(table, end - table, SettingsTable());
    std::ofstream(path, std::ios::binary) << text;
  }

  EXPECT_EQ(pipeyard::testing::ReadFile(path).substr(table, SettingsTable().size()),
            SettingsTable())
      << "PIPEYARD_UPDATE_GOLDEN=1 rewrites the table";
  EXPECT_NE(pipeyard::testing::ReadFile(path).find(SettingsTable() + "<!-- /settings -->"),
            std::string::npos);
}

// The section of a level-two heading, without it.
std::string SectionOf(const std::string& text, const std::string& heading) {
  const size_t start = text.find("\n## " + heading + "\n");
  if (start == std::string::npos) return "";
  const size_t begin = start + heading.size() + 5;
  return text.substr(begin, text.find("\n## ", begin) - begin);
}

// Whether a table's row names the metric in its first cell, its unit in the second, its direction
// in the third.
bool HasRow(const std::string& section, const MetricDefinition& metric) {
  const std::string name = fmt::format("`{}`", metric.name);
  const std::string rest = fmt::format(" | {} | {} | ", metric.unit, metric.better);
  std::istringstream lines(section);
  for (std::string line; std::getline(lines, line);) {
    const size_t first_cell = line.find(rest);
    if (line.starts_with("| ") && line.substr(0, first_cell).find(name) != std::string::npos &&
        first_cell != std::string::npos && line.find(" | ") == first_cell) {
      return true;
    }
  }
  return false;
}

TEST(Docs, TellEveryMetricWithUnitAndDirection) {
  const std::string docs = std::string(PIPEYARD_SOURCE_DIR) + "/docs/";
  const std::string workloads = pipeyard::testing::ReadFile(docs + "WORKLOADS.md");
  const std::string sweeps = pipeyard::testing::ReadFile(docs + "SWEEPS.md");
  for (const WorkloadDefinition& workload : Workloads()) {
    for (const MetricDefinition& metric : Metrics(workload.name)) {
      const std::string name(workload.name);
      EXPECT_TRUE(HasRow(SectionOf(workloads, name), metric)) << name << " " << metric.name;
      EXPECT_TRUE(HasRow(SectionOf(sweeps, "Metrics of " + name), metric))
          << name << " " << metric.name;
    }
  }
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
