#include "client/loadtest/latency_histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "client/loadtest/random.h"

namespace softlookup::loadtest {
namespace {

using std::chrono::nanoseconds;

TEST(LatencyHistogramTest, PercentilesAreWithinOnePercentOfTheSortedTimes) {
  LatencyHistogram histogram;
  std::vector<double> sorted;
  Random random(7);
  for (int i = 0; i < 100000; ++i) {
    // From 1 us to 1000 s.
    const nanoseconds time(std::llround(std::pow(10, 3 + 9 * random.Uniform())));
    histogram.Record(time);
    sorted.push_back(time.count() / 1e9);
  }
  std::sort(sorted.begin(), sorted.end());
  for (const double percent : {0.001, 1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99}) {
    const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * sorted.size() - 1e-6));
    const double exact = sorted[rank - 1];
    EXPECT_NEAR(histogram.Percentile(percent), exact, 0.01 * exact) << percent;
  }
  EXPECT_EQ(histogram.min(), sorted.front());
  EXPECT_EQ(histogram.max(), sorted.back());
  EXPECT_EQ(histogram.Percentile(100), sorted.back());
  double sum = 0;
  for (const double time : sorted) sum += time;
  EXPECT_NEAR(histogram.mean(), sum / sorted.size(), 1e-9 * sum);
}

TEST(LatencyHistogramTest, EveryTimeComesBackWithinOnePercent) {
  for (std::int64_t ns = 0; ns < (std::int64_t{1} << 42); ns = ns * 9 / 8 + 1) {
    LatencyHistogram histogram;
    histogram.Record(nanoseconds(ns));
    histogram.Record(nanoseconds(2 * ns + 1000));  // So that max is another one.
    EXPECT_NEAR(histogram.Percentile(50), ns / 1e9, 0.004 * ns / 1e9) << ns;
  }
}

TEST(LatencyHistogramTest, TimesBeyondItsRangeAreCountedAtItsEnd) {
  LatencyHistogram histogram;
  histogram.Record(std::chrono::hours(1000));
  histogram.Record(nanoseconds(-5));
  EXPECT_EQ(histogram.count(), 2);
  EXPECT_GT(histogram.Percentile(100), 2 * 3600);
  EXPECT_LE(histogram.Percentile(1), 0);
}

TEST(LatencyHistogramTest, AnEmptyOneHasNoFigures) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_TRUE(std::isnan(histogram.Percentile(99)));
  EXPECT_TRUE(std::isnan(histogram.mean()));
  EXPECT_TRUE(std::isnan(histogram.max()));
}

TEST(LatencyHistogramTest, TellsWhatCameSinceASnapshot) {
  LatencyHistogram histogram;
  for (int i = 0; i < 100; ++i) histogram.Record(std::chrono::milliseconds(1));
  const LatencyHistogram before = histogram;
  EXPECT_EQ(histogram.Since(before).count(), 0);
  for (int i = 0; i < 10; ++i) histogram.Record(std::chrono::milliseconds(50));
  const LatencyHistogram since = histogram.Since(before);
  EXPECT_EQ(since.count(), 10);
  EXPECT_NEAR(since.Percentile(50), 0.05, 0.0005);
  EXPECT_NEAR(since.min(), 0.05, 0.0005);
  EXPECT_NEAR(since.mean(), 0.05, 1e-9);
}

TEST(LatencyHistogramTest, ThreadsThatRecordIntoOneLoseNothing) {
  const auto shared = std::make_unique<SharedHistogram>();
  LatencyHistogram expected;
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    for (int i = 1; i <= 10000; ++i) expected.Record(nanoseconds(t * 1000 + i));
    threads.emplace_back([&shared, t] {
      for (int i = 1; i <= 10000; ++i) shared->Record(nanoseconds(t * 1000 + i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  LatencyHistogram histogram;
  shared->AddTo(&histogram);
  EXPECT_EQ(histogram.count(), expected.count());
  EXPECT_EQ(histogram.min(), expected.min());
  EXPECT_EQ(histogram.max(), expected.max());
  EXPECT_DOUBLE_EQ(histogram.mean(), expected.mean());
  for (int percent = 1; percent <= 100; ++percent) {
    EXPECT_EQ(histogram.Percentile(percent), expected.Percentile(percent));
  }
}

}  // namespace
}  // namespace softlookup::loadtest
