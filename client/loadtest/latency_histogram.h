#ifndef SOFTLOOKUP_CLIENT_LOADTEST_LATENCY_HISTOGRAM_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_LATENCY_HISTOGRAM_H_

#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace softlookup::loadtest {

// Histograms count times in buckets like those of an HDR histogram. From 128 ns on, there are 128
// buckets of equal width between each power of two nanoseconds and the next. A percentile is the
// middle of its bucket, so its error is at most 1/256 of the percentile, 0.4 %. Below 256 ns, it is
// exact. Times of 2 hours and 26 minutes or more are counted in the last bucket.
inline constexpr int kHistogramBits = 7;      // 128 is 2^7.
inline constexpr int kHistogramBitsMax = 43;  // Bits of the longest time, in nanoseconds.
inline constexpr std::size_t kHistogramSize = (kHistogramBitsMax - kHistogramBits + 1)
                                              << kHistogramBits;

inline std::size_t BucketOf(std::chrono::nanoseconds time) {
  constexpr std::int64_t kMost = (std::int64_t{1} << kHistogramBitsMax) - 1;
  const std::int64_t count = time.count() < 0 ? 0 : time.count() < kMost ? time.count() : kMost;
  const auto bits = static_cast<std::uint64_t>(count);
  const int shift = std::bit_width(bits | 0xff) - (kHistogramBits + 1);
  return (std::size_t(shift) << kHistogramBits) + (bits >> shift);
}

// A histogram for one thread. Copies are snapshots.
class LatencyHistogram {
 public:
  LatencyHistogram() : counts_(kHistogramSize) {}

  void Record(std::chrono::nanoseconds time);

  // Adds the times of `other`, as if they had been recorded here.
  void Add(const LatencyHistogram& other);

  // Returns what was recorded since `before`, an earlier copy of this histogram. min() and max() of
  // the result are bounds of buckets.
  LatencyHistogram Since(const LatencyHistogram& before) const;

  std::uint64_t count() const { return count_; }
  // The three functions below return seconds; NaN if nothing is recorded. min() and max() are
  // exact, except in the result of Since().
  double mean() const;
  double min() const;
  double max() const;
  // Returns the least time, in seconds, that `percent` % of the recorded times do not exceed; NaN
  // if nothing is recorded. `percent` must be in [0, 100].
  double Percentile(double percent) const;

 private:
  friend class SharedHistogram;

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  double sum_ns_ = 0;
  std::int64_t min_ns_ = INT64_MAX;
  std::int64_t max_ns_ = 0;
};

// A histogram that any thread may record into or read at any time. No thread waits for another.
class SharedHistogram {
 public:
  void Record(std::chrono::nanoseconds time) {
    const std::int64_t ns = time.count();
    counts_[BucketOf(time)].fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(ns < 0 ? 0 : static_cast<std::uint64_t>(ns), std::memory_order_relaxed);
    std::int64_t known = min_ns_.load(std::memory_order_relaxed);
    while (ns < known && !min_ns_.compare_exchange_weak(known, ns, std::memory_order_relaxed)) {
    }
    known = max_ns_.load(std::memory_order_relaxed);
    while (ns > known && !max_ns_.compare_exchange_weak(known, ns, std::memory_order_relaxed)) {
    }
  }

  // Adds what was recorded so far to `histogram`. Times that are recorded during the call can be
  // missing.
  void AddTo(LatencyHistogram* histogram) const;

 private:
  std::atomic<std::uint64_t> counts_[kHistogramSize] = {};
  std::atomic<std::uint64_t> sum_ns_ = 0;
  std::atomic<std::int64_t> min_ns_ = INT64_MAX;
  std::atomic<std::int64_t> max_ns_ = 0;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_LATENCY_HISTOGRAM_H_
