#include "client/loadtest/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace softlookup::loadtest {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The times of a bucket, in nanoseconds.
struct Range {
  std::int64_t first;
  std::int64_t last;
};

Range RangeOf(std::size_t bucket) {
  const int shift = std::max(0, static_cast<int>(bucket >> kHistogramBits) - 1);
  const std::int64_t multiple = bucket - (std::size_t(shift) << kHistogramBits);
  return {multiple << shift, ((multiple + 1) << shift) - 1};
}

}  // namespace

void LatencyHistogram::Record(std::chrono::nanoseconds time) {
  ++counts_[BucketOf(time)];
  ++count_;
  sum_ns_ += std::max<double>(0, time.count());
  min_ns_ = std::min<std::int64_t>(min_ns_, time.count());
  max_ns_ = std::max<std::int64_t>(max_ns_, time.count());
}

void LatencyHistogram::Add(const LatencyHistogram& other) {
  for (std::size_t i = 0; i < kHistogramSize; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ns_ += other.sum_ns_;
  min_ns_ = std::min(min_ns_, other.min_ns_);
  max_ns_ = std::max(max_ns_, other.max_ns_);
}

LatencyHistogram LatencyHistogram::Since(const LatencyHistogram& before) const {
  LatencyHistogram result;
  for (std::size_t i = 0; i < kHistogramSize; ++i) {
    result.counts_[i] = counts_[i] - before.counts_[i];
    if (result.counts_[i] == 0) continue;
    result.count_ += result.counts_[i];
    result.min_ns_ = std::min(result.min_ns_, RangeOf(i).first);
    result.max_ns_ = RangeOf(i).last;
  }
  result.min_ns_ = std::max(result.min_ns_, min_ns_);
  result.max_ns_ = std::min(result.max_ns_, max_ns_);
  result.sum_ns_ = sum_ns_ - before.sum_ns_;
  return result;
}

double LatencyHistogram::mean() const { return count_ == 0 ? kNan : sum_ns_ / count_ / 1e9; }
double LatencyHistogram::min() const { return count_ == 0 ? kNan : min_ns_ / 1e9; }
double LatencyHistogram::max() const { return count_ == 0 ? kNan : max_ns_ / 1e9; }

double LatencyHistogram::Percentile(double percent) const {
  if (count_ == 0) return kNan;
  // A rounding error can put percent / 100 * count_ just above an integer. Without the subtraction,
  // ceil() would then return the next integer.
  const double rank = std::ceil(percent / 100 * count_ - 1e-6);
  const auto wanted = static_cast<std::uint64_t>(std::clamp<double>(rank, 1, count_));
  if (wanted == count_) return max();
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kHistogramSize; ++i) {
    seen += counts_[i];
    if (seen < wanted) continue;
    const Range range = RangeOf(i);
    const double middle = (range.first + range.last) / 2.0;
    return std::min<double>(std::max<double>(middle, min_ns_), max_ns_) / 1e9;
  }
  return max();
}

void SharedHistogram::AddTo(LatencyHistogram* histogram) const {
  for (std::size_t i = 0; i < kHistogramSize; ++i) {
    const std::uint64_t count = counts_[i].load(std::memory_order_relaxed);
    histogram->counts_[i] += count;
    histogram->count_ += count;
  }
  histogram->sum_ns_ += sum_ns_.load(std::memory_order_relaxed);
  histogram->min_ns_ = std::min(histogram->min_ns_, min_ns_.load(std::memory_order_relaxed));
  histogram->max_ns_ = std::max(histogram->max_ns_, max_ns_.load(std::memory_order_relaxed));
}

}  // namespace softlookup::loadtest
