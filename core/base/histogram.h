#ifndef SOFTLOOKUP_CORE_BASE_HISTOGRAM_H_
#define SOFTLOOKUP_CORE_BASE_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace softlookup {

// Upper bounds of a histogram of times, in nanoseconds: 50 us to 30 s.
inline constexpr std::array<std::int64_t, 18> kTimeBounds = {
    50'000,      100'000,       200'000,       500'000,       1'000'000,      2'000'000,
    5'000'000,   10'000'000,    20'000'000,    50'000'000,    100'000'000,    200'000'000,
    500'000'000, 1'000'000'000, 2'000'000'000, 5'000'000'000, 10'000'000'000, 30'000'000'000};
// Upper bounds of a histogram of counts: 1 to 4,096.
inline constexpr std::array<std::int64_t, 13> kCountBounds = {1,   2,   4,   8,    16,   32,  64,
                                                              128, 256, 512, 1024, 2048, 4096};

// A copy of a histogram's counts. An observation that is made during the copy may be in only one of
// `counts` and `sum`.
struct HistogramCounts {
  absl::Span<const std::int64_t> bounds;
  // counts[i] is the number of observations in (bounds[i - 1], bounds[i]]. counts[0] has all
  // observations up to bounds[0]. The last element counts observations above all bounds.
  std::vector<std::uint64_t> counts;
  std::int64_t sum = 0;  // Sum of all observed values.
};

// Counts observations by size. Thread-safe without locks: an observation costs two atomic
// additions.
class Histogram {
 public:
  // `bounds` are ascending upper bounds, at most kBoundCountMax. They must outlive the histogram.
  explicit Histogram(absl::Span<const std::int64_t> bounds) : bounds_(bounds) {}

  void Observe(std::int64_t value) {
    std::size_t bucket = 0;
    while (bucket < bounds_.size() && value > bounds_[bucket]) ++bucket;
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }
  void Observe(std::chrono::nanoseconds time) { Observe(std::int64_t{time.count()}); }

  // Returns the number of observations.
  std::uint64_t total() const {
    std::uint64_t total = 0;
    for (const std::atomic<std::uint64_t>& count : counts_) {
      total += count.load(std::memory_order_relaxed);
    }
    return total;
  }

  HistogramCounts counts() const {
    HistogramCounts result{.bounds = bounds_};
    for (std::size_t i = 0; i <= bounds_.size(); ++i) {
      result.counts.push_back(counts_[i].load(std::memory_order_relaxed));
    }
    result.sum = sum_.load(std::memory_order_relaxed);
    return result;
  }

 private:
  static constexpr std::size_t kBoundCountMax = 18;

  const absl::Span<const std::int64_t> bounds_;
  std::array<std::atomic<std::uint64_t>, kBoundCountMax + 1> counts_{};
  std::atomic<std::int64_t> sum_{0};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_HISTOGRAM_H_
