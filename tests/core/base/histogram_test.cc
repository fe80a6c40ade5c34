#include "core/base/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

namespace softlookup {
namespace {

using ::testing::ElementsAre;

TEST(HistogramTest, ABoundIsTheLastOfItsBucket) {
  constexpr std::array<std::int64_t, 3> kBounds = {1, 10, 100};
  Histogram histogram(kBounds);
  for (const std::int64_t value : {0, 1, 2, 10, 11, 100, 101, 1000}) histogram.Observe(value);
  const HistogramCounts counts = histogram.counts();
  EXPECT_THAT(counts.counts, ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(counts.bounds, ElementsAre(1, 10, 100));
  EXPECT_EQ(counts.sum, 0 + 1 + 2 + 10 + 11 + 100 + 101 + 1000);
}

TEST(HistogramTest, BoundsAscend) {
  EXPECT_TRUE(std::is_sorted(kTimeBounds.begin(), kTimeBounds.end()));
  EXPECT_TRUE(std::is_sorted(kCountBounds.begin(), kCountBounds.end()));
}

TEST(HistogramTest, CountsWhatAllThreadsObserve) {
  constexpr int kThreads = 4, kEach = 10'000;
  Histogram histogram(kCountBounds);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) histogram.Observe(i % 7);
        histogram.counts();
      });
    }
  }
  const HistogramCounts counts = histogram.counts();
  EXPECT_EQ(std::accumulate(counts.counts.begin(), counts.counts.end(), std::uint64_t{0}),
            std::uint64_t{kThreads * kEach});
  std::int64_t sum = 0;
  for (int i = 0; i < kEach; ++i) sum += i % 7;
  EXPECT_EQ(counts.sum, kThreads * sum);
}

}  // namespace
}  // namespace softlookup
