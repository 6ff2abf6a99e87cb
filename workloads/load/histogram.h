// Histogram: latencies of one worker, or the sum of several workers', with three significant
// digits.
//
// Log-linear: values below 2,048 have a bucket each; every further power of two is cut into 1,024
// buckets, so a bucket is never wider than 1/1,024 of its values. The index of a bucket does not
// depend on `highest`, therefore histograms merge by adding counts. It is not a clock and not a
// metric: what a percentile of too few values means is said by Percentile(). Source of the
// arithmetic: HdrHistogram with lowest 1 and 3 significant digits (known answers:
// tests/vectors/statistics.json).
//
// Thread safety: thread-compatible. A worker records into its own without locks; whoever merges
// does so after that worker has ended.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "workloads/memory/shared.h"

namespace pipeyard::v1 {
class Histogram;
}

namespace pipeyard::load {

struct HistogramImage;

class Histogram {
 public:
  // Values from 0 on that have a bucket each; every power of two above is cut into half as many.
  static constexpr int kSubBuckets = 2048;
  // One hour in nanoseconds: longer than any call that a trial's timeout lets end.
  static constexpr int64_t kDefaultHighest = 3'600'000'000'000;

  // Values above `highest` (at least kSubBuckets) are counted as overflow.
  explicit Histogram(int64_t highest = kDefaultHighest);

  // Any non-negative value; a negative one is recorded as 0. Constant time, no allocation.
  void Record(int64_t value) {
    if (value <= highest_) {
      ++counts_[IndexOf(value)];
    } else {
      ++overflow_;
    }
    ++count_;
    if (value < min_) min_ = value < 0 ? 0 : value;
    if (value > max_) max_ = value;
  }
  void RecordMany(int64_t value, uint64_t count);
  // Records `value` and the values value - interval, value - 2 * interval, ... down to `interval`,
  // which a generator that waited for the slow operation did not issue. For open-loop generators
  // only, and at most once for a value.
  void RecordCorrected(int64_t value, int64_t expected_interval);

  // Adds the counts of `other`; what exceeds this histogram's highest bucket counts as overflow.
  void Merge(const Histogram& other);

  // Values recorded, with the overflow among them.
  uint64_t count() const { return count_; }
  uint64_t overflow() const { return overflow_; }
  // Exact extremes of what was recorded; 0 while empty.
  int64_t min() const { return count_ == 0 ? 0 : min_; }
  int64_t max() const { return max_; }

  // Nearest rank: the value of rank ceil(percentile / 100 * count), at least 1, as the highest
  // value of its bucket. 0 < percentile <= 100, to six decimals. Source: statistics.md 1.7. Errors:
  // kFailedPrecondition below MinimumCount(percentile) values; kOutOfRange where the rank lies in
  // the overflow.
  Result<int64_t> Percentile(double percentile) const;
  // The same without the minimum; for display of small histograms. Errors: kFailedPrecondition
  // while empty; kOutOfRange likewise.
  Result<int64_t> PercentileOfAny(double percentile) const;
  // Smallest count that bounds the percentile: n >= ln(0.025) / ln(percentile / 100); 1 for 100.
  static uint64_t MinimumCount(double percentile);

  // Mean and population standard deviation of the bucket medians; 0 while nothing but overflow was
  // recorded.
  double Mean() const;
  double StdDev() const;

  // `message`'s name and unit are left to the caller.
  void ToProto(v1::Histogram& message) const;
  // Nothing from a file or peer is trusted. Errors: kInvalidArgument says what is wrong.
  static Result<Histogram> FromProto(const v1::Histogram& message);

  // A worker process hands over what it recorded: Publish() there, after its last Record(); then
  // MergeImage() in the owner. Only a histogram of kDefaultHighest. `image` is all zero bytes.
  void Publish(HistogramImage& image) const;
  void MergeImage(const HistogramImage& image);

  // The bucket that holds `value`; negative values are in bucket 0.
  static constexpr size_t IndexOf(int64_t value) {
    if (value < 0) value = 0;
    const uint64_t bits = static_cast<uint64_t>(value);
    const int bucket = std::bit_width(bits | (kSubBuckets - 1)) - kSubBucketBits;
    return (static_cast<size_t>(bucket) << (kSubBucketBits - 1)) +
           static_cast<size_t>(bits >> bucket);
  }
  static int64_t LowestOf(size_t index);
  static int64_t HighestOf(size_t index);
  static int64_t MedianOf(size_t index);
  size_t num_buckets() const { return counts_.size(); }

  // Equal counts in every bucket, equal overflow and extremes; `highest` does not matter.
  friend bool operator==(const Histogram& a, const Histogram& b);

 private:
  static constexpr int kSubBucketBits = std::bit_width(static_cast<unsigned>(kSubBuckets - 1));

  int64_t highest_;
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  uint64_t overflow_ = 0;
  int64_t min_ = INT64_MAX;
  int64_t max_ = 0;
};

// SHARED. A histogram of kDefaultHighest between processes. Pages that hold no count are never
// touched.
struct HistogramImage {
  static constexpr size_t kPerPower = Histogram::kSubBuckets / 2;
  static constexpr size_t kBuckets =
      (Histogram::IndexOf(Histogram::kDefaultHighest) / kPerPower + 1) * kPerPower;

  uint64_t overflow;
  uint64_t count;
  int64_t min;
  int64_t max;
  uint64_t counts[kBuckets];
};
PIPEYARD_CHECK_SHARED(HistogramImage);

}  // namespace pipeyard::load
