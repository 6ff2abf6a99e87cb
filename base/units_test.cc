#include "base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace pipeyard {
namespace {

TEST(Units, DurationsParse) {
  const struct {
    const char* text;
    int64_t ns;
  } kCases[] = {{"0", 0},
                {"10s", 10'000'000'000},
                {"200ms", 200'000'000},
                {"1.5s", 1'500'000'000},
                {"7us", 7'000},
                {"3ns", 3},
                {"2m", 120'000'000'000},
                {"1h", 3'600'000'000'000},
                {"1d", 86'400'000'000'000},
                {"0s", 0},
                {"0.25us", 250}};
  for (const auto& c : kCases) {
    const Result<Nanos> parsed = ParseDuration(c.text);
    ASSERT_TRUE(parsed.ok()) << c.text << ": " << parsed.status().message();
    EXPECT_EQ(parsed->count(), c.ns) << c.text;
  }
}

TEST(Units, WrongDurationsSayWhatWasMeant) {
  for (const char* text : {"", "10", "10 s", "-1s", "1.s", ".5s", "10sec", "200MiB", "1.5ns",
                           "99999999999999999999s", "9999999999d", "1e3s", "s"}) {
    const Result<Nanos> parsed = ParseDuration(text);
    EXPECT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_NE(ParseDuration("10").status().message().find("such as 10s"), std::string::npos);
}

TEST(Units, SizesParse) {
  const struct {
    const char* text;
    int64_t bytes;
  } kCases[] = {{"0", 0},      {"64KiB", 65536}, {"1MiB", 1 << 20},     {"1.5KiB", 1536},
                {"100B", 100}, {"2kB", 2000},    {"1GB", 1'000'000'000}};
  for (const auto& c : kCases) {
    const Result<int64_t> parsed = ParseBytes(c.text);
    ASSERT_TRUE(parsed.ok()) << c.text;
    EXPECT_EQ(*parsed, c.bytes) << c.text;
  }
  EXPECT_FALSE(ParseBytes("65536").ok());
  EXPECT_FALSE(ParseBytes("200ms").ok());
  EXPECT_FALSE(ParseBytes("1.5B").ok());
}

TEST(Units, PercentagesParse) {
  EXPECT_DOUBLE_EQ(*ParsePercent("2%"), 0.02);
  EXPECT_DOUBLE_EQ(*ParsePercent("0.5%"), 0.005);
  EXPECT_DOUBLE_EQ(*ParsePercent("0"), 0);
  EXPECT_FALSE(ParsePercent("0.02").ok());
  EXPECT_FALSE(ParsePercent("-1%").ok());
}

RC_GTEST_PROP(Units, FormattedDurationsParseBack, ()) {
  const int64_t ns = *rc::gen::inRange<int64_t>(0, INT64_MAX);
  RC_ASSERT(ParseDuration(FormatDuration(Nanos(ns))).value().count() == ns);
}

RC_GTEST_PROP(Units, FormattedSizesParseBack, ()) {
  const int64_t bytes = *rc::gen::inRange<int64_t>(0, INT64_MAX);
  RC_ASSERT(ParseBytes(FormatBytes(bytes)).value() == bytes);
}

TEST(Units, QuantitiesAreShownWithThreeDigits) {
  EXPECT_EQ(FormatQuantity(4.7134e9, "B/s"), "4.71 GB/s");
  EXPECT_EQ(FormatQuantity(55'786, "ns"), "55.8 us");
  EXPECT_EQ(FormatQuantity(271'293, "ns"), "271 us");
  EXPECT_EQ(FormatQuantity(12'345, "count"), "12.3 k");
  EXPECT_EQ(FormatQuantity(7, "count"), "7");
  EXPECT_EQ(FormatQuantity(0, "ns"), "0 ns");
  EXPECT_EQ(FormatQuantity(2'500'000'000, "ns"), "2.50 s");
}

}  // namespace
}  // namespace pipeyard
