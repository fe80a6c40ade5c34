#include "client/loadtest/arrival_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace softlookup::loadtest {
namespace {

// When the first `count` calls are due, in seconds.
std::vector<double> Times(const LoadOptions& options, int part, int count) {
  ArrivalSchedule schedule(options, part);
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(schedule.Next().count() / 1e9);
  return times;
}

LoadOptions Options(Arrivals arrivals, double rate) {
  LoadOptions options;
  options.rate = rate;
  options.arrivals = arrivals;
  return options;
}

TEST(ArrivalScheduleTest, ConstantArrivalsAreEvenlySpaced) {
  const auto times = Times(Options(Arrivals::kConstant, 250), 0, 1000);
  for (int i = 0; i < 1000; ++i) EXPECT_NEAR(times[i], i / 250.0, 1e-9);
}

TEST(ArrivalScheduleTest, PoissonGapsAreExponentialAndIndependent) {
  constexpr int kCount = 200000;
  const auto times = Times(Options(Arrivals::kPoisson, 1000), 0, kCount);
  std::vector<double> gaps = {times[0]};
  for (int i = 1; i < kCount; ++i) gaps.push_back(times[i] - times[i - 1]);
  double mean = 0, square = 0, product = 0;
  int longer_than_mean = 0, longer_than_3_means = 0;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_GE(gaps[i], 0);
    mean += gaps[i] / kCount;
    square += gaps[i] * gaps[i] / kCount;
    if (i > 0) product += gaps[i] * gaps[i - 1] / kCount;
    longer_than_mean += gaps[i] > 1e-3;
    longer_than_3_means += gaps[i] > 3e-3;
  }
  EXPECT_NEAR(mean, 1e-3, 1e-5);
  EXPECT_NEAR(std::sqrt(square - mean * mean), 1e-3, 2e-5);
  EXPECT_NEAR(longer_than_mean / double{kCount}, std::exp(-1), 0.005);
  EXPECT_NEAR(longer_than_3_means / double{kCount}, std::exp(-3), 0.003);
  EXPECT_NEAR((product - mean * mean) / (square - mean * mean), 0, 0.01);
}

TEST(ArrivalScheduleTest, TheRateGrowsEvenlyOverTheRamp) {
  for (const Arrivals arrivals : {Arrivals::kConstant, Arrivals::kPoisson}) {
    LoadOptions options = Options(arrivals, 10000);
    options.ramp = absl::Seconds(4);
    const auto times = Times(options, 0, 60000);
    const auto until = [&](double s) {
      return std::lower_bound(times.begin(), times.end(), s) - times.begin();
    };
    EXPECT_NEAR(until(1), 1250, 150);
    EXPECT_NEAR(until(2), 5000, 300);
    EXPECT_NEAR(until(4), 20000, 600);
    EXPECT_NEAR(until(6) - until(4), 20000, 600);
  }
}

TEST(ArrivalScheduleTest, PartsTogetherAreTheWhole) {
  LoadOptions options = Options(Arrivals::kConstant, 300);
  const auto whole = Times(options, 0, 30);
  options.senders = 3;
  std::vector<double> together;
  for (int part = 0; part < 3; ++part) {
    const auto times = Times(options, part, 10);
    together.insert(together.end(), times.begin(), times.end());
  }
  std::sort(together.begin(), together.end());
  for (int i = 0; i < 30; ++i) EXPECT_NEAR(together[i], whole[i], 2e-9);

  options.arrivals = Arrivals::kPoisson;
  for (int part = 0; part < 3; ++part) {
    EXPECT_NEAR(Times(options, part, 10000).back(), 100, 4);
    EXPECT_NE(Times(options, part, 1), Times(options, (part + 1) % 3, 1));
  }
}

TEST(ArrivalScheduleTest, ASeedGivesTheSameScheduleAndAnotherOneAnother) {
  LoadOptions options = Options(Arrivals::kPoisson, 100);
  const auto times = Times(options, 0, 100);
  EXPECT_EQ(Times(options, 0, 100), times);
  options.seed = 2;
  EXPECT_NE(Times(options, 0, 100), times);
}

}  // namespace
}  // namespace softlookup::loadtest
