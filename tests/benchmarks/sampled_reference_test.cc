#include "tests/benchmarks/sampled_reference.h"

#include <cmath>
#include <limits>

#include "core/attention/reference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/random.h"

namespace softlookup::testing {
namespace {

constexpr std::int64_t kQueries = 130, kRows = 40, kKeyDim = 6, kValueDim = 3;

class SampledReferenceTest : public ::testing::Test {
 protected:
  SampledReference Sample(const ResolvedOptions& options) {
    return SampledReference(options, queries_view_, keys_view_, values_view_, pool_);
  }
  std::vector<float> Exact(const ResolvedOptions& options) {
    const ReferenceAnswer answer = ReferenceAttend(
        {.options = options, .queries = queries_view_, .keys = keys_view_, .values = values_view_});
    return {answer.values.begin(), answer.values.end()};
  }

  const std::vector<float> queries_ = NormalFloats(kQueries * kKeyDim, 1);
  const std::vector<float> keys_ = NormalFloats(kRows * kKeyDim, 2);
  // The largest component is 8.
  const std::vector<float> values_ = [] {
    std::vector<float> values(kRows * kValueDim, 0.5f);
    values[7] = -8;
    return values;
  }();
  const MatrixView queries_view_{.data = queries_.data(), .rows = kQueries, .cols = kKeyDim};
  const MatrixView keys_view_{.data = keys_.data(), .rows = kRows, .cols = kKeyDim};
  const MatrixView values_view_{.data = values_.data(), .rows = kRows, .cols = kValueDim};
  ForkJoinPool pool_{2, 1};
};

TEST_F(SampledReferenceTest, RoundedAnswersOfEveryModeHaveRoundingErrors) {
  for (const Mode mode : {Mode::kSoft, Mode::kHard, Mode::kLinear}) {
    for (const std::uint64_t top_k : {0, 5}) {
      const ResolvedOptions options{.score = Score::kEuclidean, .mode = mode, .top_k = top_k};
      EXPECT_LT(Sample(options).TrueError(Exact(options)), 1e-7);
      EXPECT_LT(Sample(options).MaxRelativeError(Exact(options)), 1e-7);
    }
  }
}

TEST_F(SampledReferenceTest, TheTrueErrorIsInUnitsOfTheLargestComponentOfAValue) {
  const ResolvedOptions options;
  std::vector<float> values = Exact(options);
  values.front() += 0.25f;
  EXPECT_NEAR(Sample(options).TrueError(values), 0.25 / 8, 1e-6);
  // The last query is in the sample, too.
  values.back() += 0.5f;
  EXPECT_NEAR(Sample(options).TrueError(values), 0.5 / 8, 1e-6);
}

TEST_F(SampledReferenceTest, TheSecondOf130QueriesIsNotInTheSample) {
  const ResolvedOptions options;
  std::vector<float> values = Exact(options);
  values[kValueDim] += 1;
  EXPECT_LT(Sample(options).TrueError(values), 1e-7);
}

TEST_F(SampledReferenceTest, WhatIsNoNumberIsInfinitelyWrong) {
  const ResolvedOptions options;
  std::vector<float> values = Exact(options);
  values[0] = std::nanf("");
  EXPECT_EQ(Sample(options).TrueError(values), std::numeric_limits<double>::infinity());
  EXPECT_EQ(Sample(options).MaxRelativeError(values), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace softlookup::testing
