#include "workloads/load/histogram.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

#include "pipeyard/v1/attempt.pb.h"

namespace pipeyard::load {
namespace {

// A percentile in millionths of a percent, so that ranks are computed in integers: 99.9 / 100 *
// 1000 is not 999 in floating point.
constexpr uint64_t kWhole = 100'000'000;

int64_t WidthOf(size_t index) {
  if (index < Histogram::kSubBuckets) return 1;
  return int64_t{1} << (index / (Histogram::kSubBuckets / 2) - 1);
}

// The highest index of any value that an int64_t holds.
size_t LastIndex() { return Histogram::IndexOf(INT64_MAX); }

}  // namespace

Histogram::Histogram(int64_t highest) : highest_(std::max<int64_t>(highest, kSubBuckets)) {
  assert(highest >= kSubBuckets);
  // Whole powers of two, as the reference has them.
  const size_t per_power = kSubBuckets / 2;
  counts_.resize((IndexOf(highest_) / per_power + 1) * per_power);
}

int64_t Histogram::LowestOf(size_t index) {
  if (index < kSubBuckets) return static_cast<int64_t>(index);
  const size_t half = kSubBuckets / 2;
  return static_cast<int64_t>(index % half + half) * WidthOf(index);
}

int64_t Histogram::HighestOf(size_t index) { return LowestOf(index) + (WidthOf(index) - 1); }

int64_t Histogram::MedianOf(size_t index) { return LowestOf(index) + WidthOf(index) / 2; }

void Histogram::RecordMany(int64_t value, uint64_t count) {
  if (count == 0) return;
  if (value <= highest_) {
    counts_[IndexOf(value)] += count;
  } else {
    overflow_ += count;
  }
  count_ += count;
  min_ = std::min(min_, std::max<int64_t>(value, 0));
  max_ = std::max(max_, value);
}

void Histogram::RecordCorrected(int64_t value, int64_t expected_interval) {
  Record(value);
  if (expected_interval <= 0) return;
  for (int64_t missing = value - expected_interval; missing >= expected_interval;
       missing -= expected_interval) {
    Record(missing);
  }
}

void Histogram::Merge(const Histogram& other) {
  const size_t shared = std::min(counts_.size(), other.counts_.size());
  for (size_t i = 0; i < shared; ++i) counts_[i] += other.counts_[i];
  for (size_t i = shared; i < other.counts_.size(); ++i) overflow_ += other.counts_[i];
  overflow_ += other.overflow_;
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

void Histogram::Publish(HistogramImage& image) const {
  assert(counts_.size() == HistogramImage::kBuckets);
  image.overflow = overflow_;
  image.count = count_;
  image.min = min_;
  image.max = max_;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] != 0) image.counts[i] = counts_[i];
  }
}

void Histogram::MergeImage(const HistogramImage& image) {
  assert(counts_.size() == HistogramImage::kBuckets);
  if (image.count == 0) return;
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += image.counts[i];
  overflow_ += image.overflow;
  count_ += image.count;
  min_ = std::min(min_, image.min);
  max_ = std::max(max_, image.max);
}

uint64_t Histogram::MinimumCount(double percentile) {
  if (percentile >= 100) return 1;
  return static_cast<uint64_t>(std::ceil(std::log(0.025) / std::log(percentile / 100)));
}

Result<int64_t> Histogram::Percentile(double percentile) const {
  if (count_ < MinimumCount(percentile)) {
    return FailedPrecondition("percentile " + std::to_string(percentile) + " of " +
                              std::to_string(count_) + " values; it needs " +
                              std::to_string(MinimumCount(percentile)));
  }
  return PercentileOfAny(percentile);
}

Result<int64_t> Histogram::PercentileOfAny(double percentile) const {
  if (count_ == 0) return FailedPrecondition("percentile of an empty histogram");
  const auto parts = static_cast<uint64_t>(std::llround(percentile * 1e6));
  using Wide = unsigned __int128;
  const auto rank = static_cast<uint64_t>((Wide{count_} * parts + (kWhole - 1)) / kWhole);
  const uint64_t wanted = std::clamp<uint64_t>(rank, 1, count_);
  uint64_t reached = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    reached += counts_[i];
    if (reached >= wanted) return HighestOf(i);
  }
  return OutOfRange("percentile " + std::to_string(percentile) + " is above " +
                    std::to_string(highest_));
}

double Histogram::Mean() const {
  const uint64_t counted = count_ - overflow_;
  if (counted == 0) return 0;
  double sum = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] != 0) {
      sum += static_cast<double>(counts_[i]) * static_cast<double>(MedianOf(i));
    }
  }
  return sum / static_cast<double>(counted);
}

double Histogram::StdDev() const {
  const uint64_t counted = count_ - overflow_;
  if (counted == 0) return 0;
  const double mean = Mean();
  double sum = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    const double distance = static_cast<double>(MedianOf(i)) - mean;
    sum += static_cast<double>(counts_[i]) * distance * distance;
  }
  return std::sqrt(sum / static_cast<double>(counted));
}

void Histogram::ToProto(v1::Histogram& message) const {
  message.clear_index();
  message.clear_count();
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    message.add_index(static_cast<uint32_t>(i));
    message.add_count(counts_[i]);
  }
  message.set_overflow(overflow_);
  message.set_min(min());
  message.set_max(max());
}

Result<Histogram> Histogram::FromProto(const v1::Histogram& message) {
  if (message.index_size() != message.count_size()) {
    return InvalidArgument("histogram: " + std::to_string(message.index_size()) + " indexes but " +
                           std::to_string(message.count_size()) + " counts");
  }
  Histogram histogram;
  uint64_t total = message.overflow();
  int64_t previous = -1;
  for (int i = 0; i < message.index_size(); ++i) {
    const uint32_t index = message.index(i);
    if (index <= previous) return InvalidArgument("histogram: indexes do not ascend");
    if (index > LastIndex()) {
      return InvalidArgument("histogram: no bucket " + std::to_string(index));
    }
    if (message.count(i) == 0) return InvalidArgument("histogram: a bucket with count 0");
    if (__builtin_add_overflow(total, message.count(i), &total)) {
      return InvalidArgument("histogram: the counts exceed 64 bits");
    }
    if (index < histogram.counts_.size()) {
      histogram.counts_[index] = message.count(i);
    } else {
      histogram.overflow_ += message.count(i);
    }
    previous = index;
  }
  histogram.overflow_ += message.overflow();
  histogram.count_ = total;
  if (total == 0) return histogram;
  if (message.min() < 0 || message.min() > message.max()) {
    return InvalidArgument("histogram: min " + std::to_string(message.min()) + " and max " +
                           std::to_string(message.max()));
  }
  histogram.min_ = message.min();
  histogram.max_ = message.max();
  return histogram;
}

bool operator==(const Histogram& a, const Histogram& b) {
  if (a.count_ != b.count_ || a.overflow_ != b.overflow_) return false;
  if (a.min() != b.min() || a.max() != b.max()) return false;
  const size_t size = std::max(a.counts_.size(), b.counts_.size());
  for (size_t i = 0; i < size; ++i) {
    const uint64_t in_a = i < a.counts_.size() ? a.counts_[i] : 0;
    const uint64_t in_b = i < b.counts_.size() ? b.counts_[i] : 0;
    if (in_a != in_b) return false;
  }
  return true;
}

}  // namespace pipeyard::load
