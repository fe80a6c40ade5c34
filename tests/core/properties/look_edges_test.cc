// Lookups that look twice at a store's rows, in cases that are made so that one part of the proof
// matters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "softlookup/engine.h"
#include "tests/core/properties/stored_rows.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::properties {
namespace {

using ::softlookup::testing::LookupAndWait;
using ::softlookup::testing::NormalFloats;

constexpr std::int64_t kDim = 64;
constexpr std::int64_t kPanelRows = 16;
constexpr std::int64_t kBlockRows = 1024;

class LookEdgeTest : public ::testing::Test {
 protected:
  // Makes rows of normally distributed keys. The value of each is its position.
  void MakeRows(std::int64_t count, double deviation = 1) {
    rows_.key_dim = kDim;
    rows_.value_dim = 1;
    rows_.keys = NormalFloats(count * kDim, 1, deviation);
    for (std::int64_t row = 0; row < count; ++row) {
      rows_.values.push_back(static_cast<float>(row));
    }
    rows_.live.assign(count, true);
  }

  // Makes rows of the value -1 whose products with SignQuery() are these.
  void MakeRowsOfProducts(const std::vector<double>& products) {
    MakeRows(static_cast<std::int64_t>(products.size()));
    const std::vector<float> signs = SignQuery();
    for (std::size_t i = 0; i < rows_.keys.size(); ++i) {
      rows_.keys[i] = signs[i % kDim] * static_cast<float>(products[i / kDim] / kDim);
    }
    rows_.values.assign(products.size(), -1);
  }

  static std::vector<float> SignQuery() {
    std::vector<float> query;
    for (std::int64_t i = 0; i < kDim; ++i) query.push_back(i % 3 == 0 ? -1 : 1);
    return query;
  }

  float* Key(std::int64_t row) { return &rows_.keys[row * kDim]; }

  // Checks the answer to one query, and returns its statistics.
  QueryStats Check(const std::vector<float>& query, const AttentionOptions& options,
                   const RowFilter& filter = {}) {
    const std::unique_ptr<Engine> engine =
        Engine::Create({.thread_count = 1, .kernel = Kernel::kSimd});
    CreateStore(*engine, "s", rows_);
    AppendRows(*engine, "s", rows_, 0, rows_.count());
    const LookupRequest request{.store = "s",
                                .queries = {.data = query.data(), .rows = 1, .cols = kDim},
                                .options = options,
                                .filter = filter};
    const auto result = LookupAndWait(*engine, request);
    EXPECT_THAT(result, IsOk());
    if (!result.ok()) return {};
    ExpectWithinBounds(options, kDim, Expect(rows_, request, 0, *engine), result->stats[0],
                       result->values.data());
    return result->stats[0];
  }

  StoredRows rows_;
};

TEST_F(LookEdgeTest, RowsFarAboveTheSampleCount) {
  MakeRows(4 * kBlockRows);
  const std::vector<float> query = NormalFloats(kDim, 2);
  for (const std::int64_t row : {2000, 3000}) {
    for (std::int64_t i = 0; i < kDim; ++i) {
      Key(row)[i] = query[i] * static_cast<float>(row) / 1000;
    }
  }
  const QueryStats stats = Check(query, {.score = Score::kDot, .temperature = 0.002});
  EXPECT_LT(stats.summed_rows, 100u);
  Check(query, {.score = Score::kDot, .temperature = 0.5});
}

TEST_F(LookEdgeTest, RowsCountThatAreAllFarBelowTheHighestPossibleLogit) {
  MakeRows(5 * kBlockRows);
  const std::vector<float> query = NormalFloats(kDim, 2);
  for (const Score score : {Score::kDot, Score::kCosine, Score::kSquaredEuclidean}) {
    // The blocks that are looked at first, to see how high logits are, have no part in this.
    RowFilter filter;
    filter.begin = kBlockRows;
    Check(query, {.score = score, .temperature = 0.003}, filter);
    filter.begin = 1;
    Check(query, {.score = score, .temperature = 0.003}, filter);
  }
}

TEST_F(LookEdgeTest, KeysOfZeroDoNotHideTheBestCosines) {
  MakeRows(4 * kBlockRows);
  for (std::int64_t row = 7; row < rows_.count(); row += 100) std::fill_n(Key(row), kDim, 0.0f);
  const std::vector<float> query = NormalFloats(kDim, 2);
  Check(query, {.score = Score::kCosine, .mode = Mode::kHard});
  Check(query, {.score = Score::kCosine, .temperature = 0.1, .top_k = 20});
  Check(query, {.score = Score::kCosine, .temperature = 0.02});
}

TEST_F(LookEdgeTest, NegativeCosinesAreRankedInFloat64) {
  MakeRows(4 * kBlockRows, 0.3);
  const std::vector<float> query = NormalFloats(kDim, 2);
  for (std::int64_t row = 0; row < rows_.count(); ++row) {
    for (std::int64_t i = 0; i < kDim; ++i) Key(row)[i] -= query[i];
  }
  Check(query, {.score = Score::kCosine, .temperature = 0.01, .mode = Mode::kHard});
  Check(query, {.score = Score::kCosine, .temperature = 0.01, .top_k = 20});
}

TEST_F(LookEdgeTest, SubnormalKeysHaveTheCosinesOfTheirDirection) {
  MakeRows(4 * kBlockRows);
  bool leaves_out = false;
  for (std::uint64_t seed = 101; seed < 109; ++seed) {
    const std::vector<float> query = NormalFloats(kDim, seed);
    for (std::int64_t i = 0; i < kDim; ++i) Key(3000)[i] = std::trunc(query[i]) * 0x1p-149f;
    const QueryStats stats =
        Check(query, {.score = Score::kCosine, .temperature = 0.02, .max_error = 0.05});
    leaves_out |= stats.summed_rows < stats.counted_rows;
    Check(query, {.score = Score::kCosine, .temperature = 0.06, .mode = Mode::kHard});
  }
  EXPECT_TRUE(leaves_out);
}

TEST_F(LookEdgeTest, CosinesOfLongQueriesAndShortKeysAreNumbers) {
  MakeRows(4 * kBlockRows);
  for (std::int64_t i = 0; i < kDim; ++i) Key(3000)[i] = static_cast<float>(i % 4) * 0x1p-149f;
  for (const double size : {0x1p-100, 1.0, 0x1p62, 0x1p100}) {
    const std::vector<float> query = NormalFloats(kDim, 2, size);
    const QueryStats stats = Check(query, {.score = Score::kCosine, .temperature = 1});
    EXPECT_FALSE(std::isnan(stats.log_sum_exp)) << size;
  }
}

// Logits of 10^9 and more, which float32 sums would miss by tens. In one block all rows are near
// the best: half of them 30 below it.
TEST_F(LookEdgeTest, BlocksFullOfCandidatesAreNotScannedCoarselyIfLogitsAreHuge) {
  MakeRows(6 * kBlockRows, 0.1);
  std::vector<float> query = NormalFloats(kDim, 2, 1e4);
  query[0] = 1e4f;
  for (std::int64_t row = kBlockRows; row < 2 * kBlockRows; ++row) {
    std::copy(query.begin(), query.end(), Key(row));
    const bool is_best = row / kPanelRows % 2 == 0;
    // A step of a float in [8192, 16384) is 2^-10: 9.77 in the product.
    Key(row)[0] -= is_best ? 0 : 3 * 0x1p-10f;
    rows_.values[row] = is_best ? 1 : -1;
  }
  Check(query, {.score = Score::kDot, .temperature = 1});
}

// The best row is one of the sample's, and all others' weights are 0 in float32.
TEST_F(LookEdgeTest, ARowOfTheSampleThatIsFarAboveAllOthersIsFoundByALook) {
  MakeRows(5 * kBlockRows);
  const std::vector<float> query(Key(3), Key(3) + kDim);
  for (const Score score : {Score::kCosine, Score::kSquaredEuclidean, Score::kEuclidean}) {
    const QueryStats stats = Check(query, {.score = score, .temperature = 0.002});
    EXPECT_LT(stats.summed_rows, 100u) << static_cast<int>(score);
  }
}

// Float32 sums of these products are off by 4e-5.
TEST_F(LookEdgeTest, TheLargestLogitIsExactEvenInAPanelOfLittleWeight) {
  std::vector<double> products(8 * kBlockRows, 50);
  std::fill_n(products.begin() + 2 * kBlockRows, 1600, 101.87);
  products[4800] = 103.87;
  MakeRowsOfProducts(products);
  Check(SignQuery(), {.score = Score::kDot, .temperature = 1});
}

TEST_F(LookEdgeTest, SquaredDistancesMayBeBeyondFloat32) {
  MakeRows(4 * kBlockRows, 0x1p55);
  const std::vector<float> query = NormalFloats(kDim, 2, 0x1p57);
  for (const double temperature : {0.002, 1.0}) {
    AttentionOptions options{.score = Score::kSquaredEuclidean, .temperature = temperature};
    Check(query, options);
    options.mode = Mode::kHard;
    Check(query, options);
    options.mode = Mode::kSoft;
    options.top_k = 5;
    Check(query, options);
  }
}

TEST_F(LookEdgeTest, AnErrorBoundIsAtMostTheLargestErrorAllowed) {
  // Panels whose bounds, powers of two, are exact and make a quarter of all. The bounds of the
  // others are as high above the weights as can be.
  constexpr double kBest = 20;
  constexpr std::int64_t kFirst = 64, kKept = 60, kLeftOut = 296;
  std::vector<double> products(8 * kBlockRows, -60);
  const auto set = [&](std::int64_t panel, double first, double others) {
    for (std::int64_t row = 0; row < kPanelRows; ++row) {
      products[panel * kPanelRows + row] = kBest + (row == 0 ? first : others);
    }
  };
  for (std::int64_t panel = kFirst; panel < kFirst + kKept; ++panel) {
    set(panel, 0.44 * std::log(2), std::log(0.0395));
  }
  for (std::int64_t panel = kFirst + kKept; panel < kFirst + kKept + kLeftOut; ++panel) {
    set(panel, -7 * std::log(2), -7 * std::log(2));
  }
  products[0] = kBest;  // Where the looks' masses refer to.
  // A row that does not count makes higher logits possible.
  products.back() = 2 * kBest;
  MakeRowsOfProducts(products);
  rows_.labels.resize(products.size());
  rows_.labels.back() = {"out"};
  RowFilter filter;
  filter.no_labels = {"out"};
  for (const double max_error : {0.5, 1.0}) {
    Check(SignQuery(), {.score = Score::kDot, .temperature = 1, .max_error = max_error}, filter);
  }
}

TEST_F(LookEdgeTest, TheLargestLogitIsThatOfARowWhosePanelHasLittleWeight) {
  std::vector<double> products(8 * kBlockRows, -20);
  std::fill_n(products.begin() + 2 * kBlockRows, 1600, 20);
  constexpr std::int64_t kBest = 4800;
  products[kBest] = 22;
  MakeRowsOfProducts(products);
  for (const double max_error : {1e-4, 1e-3, 0.05, 1.0}) {
    Check(SignQuery(), {.score = Score::kDot, .temperature = 1, .max_error = max_error});
  }
}

}  // namespace
}  // namespace softlookup::properties
