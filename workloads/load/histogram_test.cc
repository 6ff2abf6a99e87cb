#include "workloads/load/histogram.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pipeyard/v1/attempt.pb.h"

namespace pipeyard::load {
namespace {

using nlohmann::json;

// The highest value of the reference's configuration in the vectors.
constexpr int64_t kVectorHighest = 3'600'000'000;

// RapidCheck prints its seed; this makes it obey ours.
const bool kSeeded = [] {
  const char* seed = std::getenv("PIPEYARD_SEED");
  return seed != nullptr && ::setenv("RC_PARAMS", ("seed=" + std::string(seed)).c_str(), 0) == 0;
}();

json Vectors() {
  std::ifstream file(PIPEYARD_SOURCE_DIR "/tests/vectors/statistics.json");
  return json::parse(file).at("hdr_histogram");
}

Histogram HistogramOf(const json& worker) {
  Histogram histogram(kVectorHighest);
  for (const json& pair : worker) {
    histogram.RecordMany(pair.at(0).get<int64_t>(), pair.at(1).get<uint64_t>());
  }
  return histogram;
}

void ExpectPercentiles(const Histogram& histogram, const json& expected, const std::string& name) {
  for (const auto& [percentile, value] : expected.items()) {
    const Result<int64_t> got = histogram.PercentileOfAny(std::stod(percentile));
    ASSERT_TRUE(got.ok()) << name << " p" << percentile;
    EXPECT_EQ(*got, value.get<int64_t>()) << name << " p" << percentile;
  }
}

// "mean=1117.821782 stddev=3116.0681" to the digits printed there.
double NumberAfter(const std::string& line, const std::string& key) {
  const size_t at = line.find(key + "=");
  return at == std::string::npos ? -1 : std::stod(line.substr(at + key.size() + 1));
}

TEST(Histogram, HasTheReferencesNumberOfBuckets) {
  const std::string line = Vectors().at("init").get<std::string>();

  EXPECT_EQ(Histogram::kSubBuckets, NumberAfter(line, "sub_bucket_count"));
  EXPECT_EQ(static_cast<double>(Histogram(kVectorHighest).num_buckets()),
            NumberAfter(line, "counts_len"));
}

TEST(Histogram, BucketsHaveTheReferencesBounds) {
  const json entries = Vectors().at("bucket_math");
  for (const json& entry : entries) {
    const std::string line = entry.at("line").get<std::string>();
    const int64_t value = std::stoll(line.substr(2));
    const size_t index = Histogram::IndexOf(value);

    EXPECT_EQ(static_cast<double>(Histogram::LowestOf(index)), NumberAfter(line, "lowest")) << line;
    EXPECT_EQ(static_cast<double>(Histogram::HighestOf(index)),
              NumberAfter(line, "highest_via_next"))
        << line;
    EXPECT_EQ(static_cast<double>(Histogram::HighestOf(index) - Histogram::LowestOf(index) + 1),
              NumberAfter(line, "size"))
        << line;
    EXPECT_EQ(static_cast<double>(Histogram::MedianOf(index)), NumberAfter(line, "median")) << line;
  }
}

TEST(Histogram, MergesByCountsBeforeAnyPercentileIsTaken) {
  const json entries = Vectors().at("cases");
  for (const json& entry : entries) {
    const std::string name = entry.at("name").get<std::string>();
    Histogram merged(kVectorHighest);
    size_t worker_index = 0;
    for (const json& worker : entry.at("workers")) {
      const Histogram histogram = HistogramOf(worker);
      ExpectPercentiles(histogram, entry.at("hdr_c_per_worker").at(worker_index), name);
      merged.Merge(histogram);
      ++worker_index;
    }

    ExpectPercentiles(merged, entry.at("hdr_c_merged"), name);
    EXPECT_EQ(merged.count(), entry.at("total").get<uint64_t>()) << name;
    const std::string line = entry.at("merged_stats").get<std::string>();
    EXPECT_NEAR(merged.Mean(), NumberAfter(line, "mean"), 1e-6 * merged.Mean()) << name;
    EXPECT_NEAR(merged.StdDev(), NumberAfter(line, "stddev"), 1e-6 * merged.StdDev()) << name;
    EXPECT_EQ(static_cast<double>(merged.min()), NumberAfter(line, "min")) << name;
    EXPECT_EQ(static_cast<double>(Histogram::HighestOf(Histogram::IndexOf(merged.max()))),
              NumberAfter(line, "max"))
        << name;
    // The reference reports the highest value of the bucket that holds the exact nearest rank.
    for (const auto& [percentile, exact] : entry.at("exact_nearest_rank_merged").items()) {
      const int64_t value = exact.get<int64_t>();
      EXPECT_EQ(*merged.PercentileOfAny(std::stod(percentile)),
                Histogram::HighestOf(Histogram::IndexOf(value)))
          << name << " p" << percentile;
    }
  }
}

TEST(Histogram, MergedPercentileIsNeitherMeanNorWeightedMeanOfPercentiles) {
  const json entry = Vectors().at("cases").at(0);
  Histogram merged(kVectorHighest);
  for (const json& worker : entry.at("workers")) merged.Merge(HistogramOf(worker));

  const double p99 = static_cast<double>(*merged.PercentileOfAny(99));
  EXPECT_NE(p99, entry.at("WRONG_mean_of_percentiles").at("99").get<double>());
  EXPECT_NE(p99, entry.at("WRONG_count_weighted_mean").at("99").get<double>());
}

TEST(Histogram, RankIsTheCeilingAsStatisticsRequire) {
  Histogram histogram;
  for (int64_t value = 1; value <= 10; ++value) histogram.Record(value);

  EXPECT_EQ(*histogram.PercentileOfAny(94), 10);  // the reference's C library rounds to the 9th
  EXPECT_EQ(*histogram.PercentileOfAny(90), 9);
  EXPECT_EQ(*histogram.PercentileOfAny(0.001), 1);
}

TEST(Histogram, RankOfAThousandAt99Point9Is999) {
  Histogram histogram;
  for (int64_t value = 1; value <= 1000; ++value) histogram.Record(value);

  EXPECT_EQ(*histogram.PercentileOfAny(99.9), 999);
}

TEST(Histogram, RefusesAPercentileOfTooFewValues) {
  const json bounds = [] {
    std::ifstream file(PIPEYARD_SOURCE_DIR "/tests/vectors/statistics.json");
    return json::parse(file).at("min_n_for_upper_bound");
  }();
  for (const json& bound : bounds) {
    const double percentile = bound.at("p").get<double>() * 100;
    const uint64_t minimum = bound.at("n").get<uint64_t>();
    EXPECT_EQ(Histogram::MinimumCount(percentile), minimum) << percentile;
    Histogram histogram;
    histogram.RecordMany(5, minimum - 1);
    EXPECT_EQ(histogram.Percentile(percentile).status().code(), StatusCode::kFailedPrecondition);
    histogram.Record(5);
    EXPECT_TRUE(histogram.Percentile(percentile).ok()) << percentile;
  }
  EXPECT_FALSE(Histogram().PercentileOfAny(50).ok());
}

TEST(Histogram, CountsWhatIsTooHighAsOverflow) {
  Histogram histogram(kVectorHighest);
  histogram.Record(10);
  histogram.Record(4'000'000'000);

  EXPECT_EQ(histogram.count(), 2u);
  EXPECT_EQ(histogram.overflow(), 1u);
  EXPECT_EQ(histogram.max(), 4'000'000'000);
  EXPECT_EQ(*histogram.PercentileOfAny(50), 10);
  const Status status = histogram.PercentileOfAny(100).status();
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
  EXPECT_NE(status.message().find("above 3600000000"), std::string::npos) << status.message();
}

TEST(Histogram, CorrectsForOmittedOperationsAsTheReference) {
  const json vector = Vectors().at("coordinated_omission");
  const json record = vector.at("record_corrected").at(0);
  Histogram histogram(kVectorHighest);
  histogram.RecordCorrected(record.at(0).get<int64_t>(), record.at(2).get<int64_t>());

  const std::string line = vector.at("lines").at(0).get<std::string>();
  EXPECT_EQ(static_cast<double>(histogram.count()), NumberAfter(line, "n"));
  EXPECT_NEAR(histogram.Mean(), NumberAfter(line, "mean"), 1e-3);
  EXPECT_NEAR(histogram.StdDev(), NumberAfter(line, "stddev"), 1e-3);
  for (size_t i = 1; i < vector.at("lines").size(); ++i) {
    double percentile = 0;
    long value = 0;
    const std::string text = vector.at("lines").at(i).get<std::string>();
    ASSERT_EQ(std::sscanf(text.c_str(), "P h0 %lf %ld", &percentile, &value), 2) << text;
    EXPECT_EQ(*histogram.PercentileOfAny(percentile), value) << text;
  }
}

RC_GTEST_PROP(HistogramProperty, OrderOfMergingDoesNotMatter,
              (std::vector<std::vector<uint32_t>> workers)) {
  Histogram forward;
  Histogram backward;
  Histogram direct;
  for (const std::vector<uint32_t>& worker : workers) {
    Histogram histogram;
    for (const uint32_t value : worker) {
      histogram.Record(value);
      direct.Record(value);
    }
    forward.Merge(histogram);
  }
  for (auto worker = workers.rbegin(); worker != workers.rend(); ++worker) {
    Histogram histogram;
    for (const uint32_t value : *worker) histogram.Record(value);
    backward.Merge(histogram);
  }
  RC_ASSERT(forward == backward);
  RC_ASSERT(forward == direct);
}

RC_GTEST_PROP(HistogramProperty, EveryValueLiesInItsBucketOfThreeDigits, (uint64_t bits)) {
  const auto value = static_cast<int64_t>(bits >> (bits % 63 + 1));
  const size_t index = Histogram::IndexOf(value);
  RC_ASSERT(Histogram::LowestOf(index) <= value);
  RC_ASSERT(Histogram::HighestOf(index) >= value);
  RC_ASSERT(static_cast<double>(Histogram::HighestOf(index) - Histogram::LowestOf(index)) <=
            static_cast<double>(value) / 1000);
}

RC_GTEST_PROP(HistogramProperty, SurvivesTheWire, (const std::vector<uint64_t>& values)) {
  Histogram histogram;
  for (const uint64_t value : values)
    histogram.Record(static_cast<int64_t>(value >> (value % 60 + 1)));
  v1::Histogram message;
  histogram.ToProto(message);
  const Result<Histogram> back = Histogram::FromProto(message);
  RC_ASSERT(back.ok());
  RC_ASSERT(*back == histogram);
}

TEST(Histogram, RefusesAMessageThatIsNotAHistogram) {
  struct Case {
    std::string what;
    std::vector<uint32_t> index;
    std::vector<uint64_t> count;
    uint64_t overflow;
    int64_t min;
    int64_t max;
  };
  const std::vector<Case> cases = {
      {"more indexes than counts", {1, 2}, {1}, 0, 1, 2},
      {"not ascending", {2, 1}, {1, 1}, 0, 1, 2},
      {"the same bucket twice", {2, 2}, {1, 1}, 0, 2, 2},
      {"a count of 0", {2}, {0}, 0, 2, 2},
      {"no such bucket", {4'000'000'000u}, {1}, 0, 2, 2},
      {"counts beyond 64 bits", {1, 2}, {UINT64_MAX, 1}, 0, 1, 2},
      {"overflow beyond 64 bits", {1}, {UINT64_MAX}, 1, 1, 2},
      {"min above max", {1}, {1}, 0, 2, 1},
      {"negative min", {1}, {1}, 0, -2, 1},
  };
  for (const Case& c : cases) {
    v1::Histogram message;
    for (const uint32_t index : c.index) message.add_index(index);
    for (const uint64_t count : c.count) message.add_count(count);
    message.set_overflow(c.overflow);
    message.set_min(c.min);
    message.set_max(c.max);
    EXPECT_EQ(Histogram::FromProto(message).status().code(), StatusCode::kInvalidArgument)
        << c.what;
  }
}

}  // namespace
}  // namespace pipeyard::load
