// Scans of a block whose logits must be precise only in some panels.
#include "core/attention/block_scan.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/attention/score_pair.h"
#include "core/kernels/float32_sums.h"
#include "core/kernels/sum_values.h"
#include "tests/core/kernels/sketched_rows.h"
#include "tests/testing/kept_rows.h"
#include "tests/testing/random.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;
using testing::KeptRows;
using testing::NormalFloats;

// Scans one block for queries whose logits are large.
class CoarseScanTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kDim = 96, kPanels = 64, kRows = kPanels * kPanelRows;
  static constexpr int kQueries = 3;

  CoarseScanTest()
      : rows_({.key_dim = kDim, .value_dim = kDim}, kRows, 3),
        components_(NormalFloats(kQueries * kDim, 5)),
        sketch_(rows_) {
    block_.view = rows_.view();
    block_.sketch = &sketch_.view();
    double square_max = 0;
    for (std::int64_t row = 0; row < kRows; ++row) {
      square_max = std::max(square_max, testing::Product(rows_.key(row), rows_.key(row), kDim));
    }
    key_norm_max_ = static_cast<float>(std::sqrt(square_max));
    block_.view.key_norms_max = &key_norm_max_;
    block_.position_count = kRows;
    plan_.options = {.score = Score::kDot, .temperature = 0.01, .mode = Mode::kSoft};
    plan_.key_dims = plan_.value_dims = {.begin = 0, .count = kDim};
    for (int q = 0; q < kQueries; ++q) {
      const float* const query = components_.data() + q * kDim;
      queries_[q] = {
          .components = query,
          .magnitude = testing::MagnitudeOf(query, kDim),
          .norm = std::sqrt(testing::Product(query, query, kDim)),
          .float32_errors = kernels::Float32Roundings(kDim, /*is_fused=*/true).ErrorNormsOf(query),
          .end = kRows};
    }
  }

  struct Result {
    std::array<PartialState, kQueries> states;
    std::vector<double> sums;
  };
  Result Scan(const std::vector<std::uint64_t>* fine_panels, int first = 0,
              int count = kQueries) const {
    Result result{.sums = std::vector<double>(kQueries * kernels::PaddedValueDim(kDim))};
    ScanBlock(plan_, block_, {}, &queries_[first], count, result.states.data(), result.sums.data(),
              fine_panels == nullptr ? nullptr : fine_panels->data());
    return result;
  }
  // Returns the panel of the query's largest logit, as a bit.
  std::uint64_t BestPanelOf(int q) const {
    std::int64_t best = 0;
    const auto score = [&](std::int64_t row) {
      return ScorePair(plan_.options.score, queries_[q].components, rows_.key(row), kDim);
    };
    for (std::int64_t row = 1; row < kRows; ++row) {
      if (score(row) > score(best)) best = row;
    }
    return std::uint64_t{1} << (best / kPanelRows);
  }

  KeptRows rows_;
  std::vector<float> components_;
  kernels::Sketch sketch_;
  float key_norm_max_ = 0;
  PositionedBlock block_;
  ScanPlan plan_;
  std::array<HeadQuery, kQueries> queries_;
};

TEST_F(CoarseScanTest, FinePanelsAreScoredInFloat64) {
  for (const Score score : {Score::kDot, Score::kCosine, Score::kSquaredEuclidean}) {
    plan_.options.score = score;
    const Result exact = Scan(nullptr);
    const std::vector<std::uint64_t> none(kQueries);
    const Result coarse = Scan(&none);
    std::vector<std::uint64_t> best;
    for (int q = 0; q < kQueries; ++q) best.push_back(BestPanelOf(q));
    const Result fine = Scan(&best);
    for (int q = 0; q < kQueries; ++q) {
      EXPECT_EQ(fine.states[q].max_logit, exact.states[q].max_logit) << static_cast<int>(score);
      EXPECT_NE(coarse.states[q].max_logit, exact.states[q].max_logit) << static_cast<int>(score);
      EXPECT_NEAR(coarse.states[q].max_logit, exact.states[q].max_logit, 0.1);
    }
  }
}

TEST_F(CoarseScanTest, FinePanelsAreThoseOfTheBits) {
  const Result exact = Scan(nullptr);
  for (int q = 0; q < kQueries; ++q) {
    // Runs of panels and single ones, the last of the block among them.
    const std::uint64_t best = BestPanelOf(q);
    for (const std::uint64_t others : {std::uint64_t{0b11} << 62, std::uint64_t{0b101}}) {
      const std::vector<std::uint64_t> without = {others & ~best};
      EXPECT_NE(Scan(&without, q, 1).states[0].max_logit, exact.states[q].max_logit);
      const std::vector<std::uint64_t> with = {others | best};
      EXPECT_EQ(Scan(&with, q, 1).states[0].max_logit, exact.states[q].max_logit);
    }
  }
}

// A mask and a range of positions leave rows out; the best of those that are left is found.
TEST_F(CoarseScanTest, RowsThatDoNotCountAreLeftOutOfFinePanels) {
  std::vector<std::uint64_t> mask(kRows / 64, 0x5555555555555555);
  block_.row_mask = mask.data();
  for (HeadQuery& query : queries_) {
    query.begin = 5;
    query.end = kRows - 21;
  }
  const Result exact = Scan(nullptr);
  const std::vector<std::uint64_t> some(kQueries, std::uint64_t{0x1fffffff} << 2);
  const std::vector<std::uint64_t> others(kQueries, std::uint64_t{0x1fffffff} << 31);
  const std::vector<std::uint64_t> ends(kQueries, std::uint64_t{0xf} << 60 | 0b11);
  const Result first = Scan(&some), second = Scan(&others), last = Scan(&ends);
  for (int q = 0; q < kQueries; ++q) {
    EXPECT_EQ(exact.states[q].counted_rows, static_cast<std::uint64_t>((kRows - 26) / 2));
    int equal = 0;
    for (const Result* result : {&first, &second, &last}) {
      EXPECT_EQ(result->states[q].counted_rows, exact.states[q].counted_rows);
      equal += result->states[q].max_logit == exact.states[q].max_logit ? 1 : 0;
    }
    EXPECT_EQ(equal, 1) << "of three that together have all panels";
  }
}

TEST_F(CoarseScanTest, MostPanelsInFloat64MakeItAll) {
  const Result exact = Scan(nullptr);
  const std::vector<std::uint64_t> most(kQueries, 0x1ffffffff);
  const Result fine = Scan(&most);
  for (int q = 0; q < kQueries; ++q) {
    EXPECT_EQ(fine.states[q].max_logit, exact.states[q].max_logit);
    EXPECT_EQ(fine.states[q].weight, exact.states[q].weight);
  }
  EXPECT_EQ(fine.sums, exact.sums);
}

TEST_F(CoarseScanTest, AQuerysBitsDoNotDependOnTheOthers) {
  const std::vector<std::uint64_t> panels = {0b110, 0, 0b1};
  const Result together = Scan(&panels);
  const auto stride = kernels::PaddedValueDim(kDim);
  for (int q = 0; q < kQueries; ++q) {
    const std::vector<std::uint64_t> own = {panels[q]};
    const Result alone = Scan(&own, q, 1);
    EXPECT_EQ(alone.states[0].max_logit, together.states[q].max_logit);
    EXPECT_EQ(alone.states[0].weight, together.states[q].weight);
    for (std::int64_t i = 0; i < kDim; ++i) {
      ASSERT_EQ(std::bit_cast<std::uint64_t>(alone.sums[i]),
                std::bit_cast<std::uint64_t>(together.sums[q * stride + i]));
    }
  }
}

}  // namespace
}  // namespace softlookup
