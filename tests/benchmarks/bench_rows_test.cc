#include "tests/benchmarks/bench_rows.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace softlookup::testing {
namespace {

using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

double Distance(const float* a, const float* b, std::int64_t dim) {
  double square = 0;
  for (std::int64_t i = 0; i < dim; ++i) square += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(square);
}

// The rows of a matrix, each as a vector.
std::vector<std::vector<float>> RowsOf(const MatrixView& matrix) {
  std::vector<std::vector<float>> rows;
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    rows.emplace_back(matrix.row(r), matrix.row(r) + matrix.cols);
  }
  return rows;
}

class BenchRowsTest : public ::testing::Test {
 protected:
  ForkJoinPool pool_{2, 1};
};

TEST_F(BenchRowsTest, ClustersArriveOneAfterTheOther) {
  const RowFlags flags{.row_count = 400, .key_dim = 16, .cluster_count = 4, .spread = 0.01};
  const BenchRows rows = MakeRows(flags, pool_);
  const MatrixView keys = rows.keys.view();
  for (std::int64_t row = 1; row < keys.rows; ++row) {
    const double distance = Distance(keys.row(row), keys.row(row - 1), keys.cols);
    if (row % 100 == 0) {
      EXPECT_GT(distance, 1) << row;
    } else {
      EXPECT_LT(distance, 0.2) << row;
    }
  }
}

TEST_F(BenchRowsTest, ShuffledKeysKeepTheirValues) {
  RowFlags flags{.row_count = 300, .key_dim = 4, .value_dim = 3, .cluster_count = 5};
  const BenchRows ordered = MakeRows(flags, pool_);
  flags.shuffle = true;
  const BenchRows shuffled = MakeRows(flags, pool_);
  const auto pairs_of = [](const BenchRows& rows) {
    const auto keys = RowsOf(rows.keys.view()), values = RowsOf(rows.values());
    std::vector<std::pair<std::vector<float>, std::vector<float>>> pairs;
    for (std::size_t i = 0; i < keys.size(); ++i) pairs.emplace_back(keys[i], values[i]);
    return pairs;
  };
  EXPECT_NE(pairs_of(shuffled), pairs_of(ordered));
  EXPECT_THAT(pairs_of(shuffled), UnorderedElementsAreArray(pairs_of(ordered)));
}

TEST_F(BenchRowsTest, QueriesWithoutNoiseAreKeys) {
  const RowFlags flags{.row_count = 50, .key_dim = 4, .noise = 0};
  const BenchRows rows = MakeRows(flags, pool_);
  const auto keys = RowsOf(rows.keys.view());
  const BenchMatrix queries = MakeQueries(flags, 20, rows.keys.view(), Score::kDot, pool_);
  std::set<std::vector<float>> drawn;
  for (const auto& query : RowsOf(queries.view())) {
    EXPECT_THAT(keys, ::testing::Contains(query));
    drawn.insert(query);
  }
  EXPECT_GT(drawn.size(), 5);
}

TEST_F(BenchRowsTest, KeysAreNormalisedBeforeTheNoiseIfTheScoreIsCosine) {
  RowFlags flags{.row_count = 50, .key_dim = 100, .noise = 0};
  const BenchRows rows = MakeRows(flags, pool_);
  const BenchMatrix clean = MakeQueries(flags, 200, rows.keys.view(), Score::kCosine, pool_);
  const std::vector<float> origin(100);
  for (const auto& query : RowsOf(clean.view())) {
    EXPECT_NEAR(Distance(query.data(), origin.data(), 100), 1, 1e-5);
  }
  flags.noise = 0.05;
  const BenchMatrix noisy = MakeQueries(flags, 200, rows.keys.view(), Score::kCosine, pool_);
  double square = 0;
  for (std::size_t i = 0; i < noisy.data.size(); ++i) {
    square += std::pow(noisy.data[i] - clean.data[i], 2);
  }
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(noisy.data.size())), 0.05, 0.002);
}

TEST_F(BenchRowsTest, ASeedMakesTheSameRowsOnAnyNumberOfThreads) {
  ForkJoinPool other_pool(1, 1);
  RowFlags flags{.row_count = 2000, .key_dim = 20, .cluster_count = 3, .shuffle = true};
  const BenchRows rows = MakeRows(flags, pool_);
  EXPECT_EQ(MakeRows(flags, other_pool).keys.data, rows.keys.data);
  flags.seed = 2;
  EXPECT_NE(MakeRows(flags, pool_).keys.data, rows.keys.data);
}

}  // namespace
}  // namespace softlookup::testing
