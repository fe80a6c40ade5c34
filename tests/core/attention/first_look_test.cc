// Answers of two looks, against those of all rows in float64, where bounds come to their limits.
#include "core/attention/first_look.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/error_budget.h"
#include "tests/core/attention/look_answers.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/kept_rows.h"
#include "tests/testing/random.h"
#include "tests/testing/sanitized.h"

namespace softlookup {
namespace {

using testing::NormalFloats;
using testing::Product;

TEST(FirstLookTest, CosinesOfZeroKeysProveNothing) {
  std::vector<float> keys = NormalFloats(kLookRows * kLookDim, 1);
  std::fill_n(keys.begin() + 1500 * kLookDim, kLookDim, 0.0f);
  const TestRows rows = RowsOfKeys(keys);
  const std::vector<float> queries = NormalFloats(3 * kLookDim, 3);
  for (const Mode mode : {Mode::kHard, Mode::kSoft}) {
    for (const std::uint64_t top_k : {0, 3}) {
      for (const double temperature : {0.5, 0.02, 0.002}) {
        SCOPED_TRACE(::testing::Message() << static_cast<int>(mode) << " top_k " << top_k
                                          << " temperature " << temperature);
        ExpectRightAnswer(rows, rows.Task(queries, {.score = Score::kCosine,
                                                    .temperature = temperature,
                                                    .mode = mode,
                                                    .top_k = top_k}));
      }
    }
  }
}

TEST(FirstLookTest, DistancesAreRightBeyondTheRangeOfFloat32) {
  for (const float size : {0x1p40f, 0x1p54f, 0x1p58f}) {
    const std::vector<float> keys = NormalFloats(kLookRows * kLookDim, 1, size);
    const TestRows rows = RowsOfKeys(keys);
    std::vector<float> queries = NormalFloats(2 * kLookDim, 3, size);
    std::copy_n(keys.begin() + 2000 * kLookDim, kLookDim, queries.begin());
    for (const Score score : {Score::kEuclidean, Score::kSquaredEuclidean}) {
      for (const Mode mode : {Mode::kHard, Mode::kSoft}) {
        for (const double temperature : {1e-6, 1.0}) {
          SCOPED_TRACE(::testing::Message()
                       << "score " << static_cast<int>(score) << " mode " << static_cast<int>(mode)
                       << " temperature " << temperature << " size " << size);
          ExpectRightAnswer(
              rows, rows.Task(queries, {.score = score, .temperature = temperature, .mode = mode}));
        }
      }
    }
  }
}

// Only blocks 0, 16 and so on belong to the sample.
TEST(FirstLookTest, ARowFarAboveTheSampleIsKept) {
  std::vector<float> keys = NormalFloats(kLookRows * kLookDim, 1, 0.03);
  std::vector<float> query = NormalFloats(kLookDim, 3);
  for (const std::int64_t count : {1, 2}) {
    for (const float logit : {80.0f, 86.0f, 89.0f, 95.0f, 200.0f, 2000.0f}) {
      for (std::int64_t row = 2500; row < 2500 + count; ++row) {
        for (std::int64_t i = 0; i < kLookDim; ++i) {
          keys[row * kLookDim + i] =
              query[i] * logit / static_cast<float>(Product(query.data(), query.data(), kLookDim));
        }
      }
      const TestRows rows = RowsOfKeys(keys);
      SCOPED_TRACE(logit);
      ExpectRightAnswer(rows, rows.Task(query, {.score = Score::kDot}));
    }
  }
}

// There is no sample, because a range begins in block 0. So the reference is the largest possible
// logit, which can be far above all logits.
TEST(FirstLookTest, RowsCountThatAreFarBelowTheReference) {
  const TestRows rows = RowsOfKeys(NormalFloats(kLookRows * 130, 1), 130);
  const std::vector<float> queries = NormalFloats(3 * 130, 3);
  std::vector<bool> allowed(kLookRows, true);
  for (std::size_t row = 0; row < 5; ++row) allowed[row] = false;
  for (const double temperature : {2.0, 1.0, 0.5, 0.2, 0.1, 0.02, 1e-4}) {
    AttentionTask task = rows.Task(queries, {.score = Score::kDot, .temperature = temperature});
    task.begin = 5;
    SCOPED_TRACE(temperature);
    ExpectRightAnswer(rows, task, allowed);
  }
}

TEST(FirstLookTest, TakesAnyNumberOfRanks) {
  const TestRows rows = RowsOfKeys(NormalFloats(kLookRows * kLookDim, 1));
  const std::vector<float> queries = NormalFloats(2 * kLookDim, 3);
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  for (const Score score : {Score::kDot, Score::kEuclidean}) {
    for (const std::uint64_t top_k :
         {std::uint64_t{1}, std::uint64_t{100}, std::uint64_t{kLookRows}, kMost / 2, kMost / 2 + 1,
          kMost - 1, kMost}) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(score) << " top_k " << top_k);
      ExpectRightAnswer(rows,
                        rows.Task(queries, {.score = score, .mode = Mode::kHard, .top_k = top_k}));
    }
  }
}

// All cosines are negative. The best differ by less than the error of a cosine whose norms are
// rounded to float32.
TEST(FirstLookTest, NegativeCosinesAreRankedExactly) {
  const std::vector<float> query = NormalFloats(kLookDim, 3), other = NormalFloats(kLookDim, 4);
  std::vector<float> keys = NormalFloats(kLookRows * kLookDim, 1, 1e-3);
  for (std::int64_t row = 0; row < kLookRows; ++row) {
    float* const key = keys.data() + row * kLookDim;
    const float size = 1 + 1e-3f * static_cast<float>(row);
    const bool is_best = row % 97 == 50;
    for (std::int64_t i = 0; i < kLookDim; ++i) {
      key[i] = is_best ? size * (other[i] - query[i]) : size * (key[i] - query[i]);
    }
  }
  const TestRows rows = RowsOfKeys(keys);
  for (const std::uint64_t top_k : {0, 5}) {
    SCOPED_TRACE(top_k);
    ExpectRightAnswer(rows, rows.Task(query, {.score = Score::kCosine,
                                              .temperature = 0.01,
                                              .mode = Mode::kHard,
                                              .top_k = top_k}));
  }
}

// float32 does not hold the inverse of the norm of one key. The largest queries bring its products
// into float32's range.
TEST(FirstLookTest, CosinesAreRightWhereTheInverseOfANormIsNotInRange) {
  for (const float tiny : {0x1p-110f, 0x1p-128f, 0x1p-135f}) {
    std::vector<float> keys = NormalFloats(kLookRows * kLookDim, 1);
    for (std::int64_t i = 0; i < kLookDim; ++i) keys[1100 * kLookDim + i] *= tiny;
    const TestRows rows = RowsOfKeys(keys);
    for (const float size : {1.0f, 0x1p60f, 0x1p100f}) {
      const std::vector<float> queries = NormalFloats(2 * kLookDim, 3, size);
      SCOPED_TRACE(::testing::Message() << tiny << " " << size);
      ExpectRightAnswer(rows, rows.Task(queries, {.score = Score::kCosine}));
    }
  }
}

// Half of the panels have `spared` times the weight that panels left out may have. In the others,
// rows whose values alone may be left out have nearly the weight that such rows may have. Codes
// hold the keys without an error, so that bounds are near the logits.
void ExpectRightAnswerWhereMuchIsLeftOut(double max_error, double spared, double shift) {
  // How many times as much weight the other half of the panels has.
  const double times = 4 / (max_error * spared) - 1;
  std::vector<float> keys(kLookRows * kLookDim);
  for (std::int64_t row = 0; row < kLookRows; ++row) {
    const bool is_kept = row / kernels::kPanelRows % 2 == 0;
    const double heavy = shift + 40 + (is_kept ? std::log(times) : 0);
    const double light = heavy + std::log(max_error / (64 - 15 * max_error)) - 0.01;
    const double logit = row < kernels::kBlockRowsMax     ? -20
                         : row % kernels::kPanelRows == 0 ? heavy
                                                          : light;
    keys[row * kLookDim] = static_cast<float>(logit);
  }
  const TestRows rows = RowsOfKeys(keys);
  std::vector<float> query(kLookDim);
  query[0] = 1;
  SCOPED_TRACE(::testing::Message() << max_error << " spared " << spared << " shift " << shift);
  ExpectRightAnswer(rows, rows.Task(query, {.score = Score::kDot, .max_error = max_error}));
}

TEST(FirstLookTest, StatesNoLargerErrorThanMayBeWhereMuchIsLeftOut) {
  for (const double max_error : {0.02, 0.2, 1.0}) {
    for (const double spared : {0.96, 0.95, 0.93, 0.91, 0.88}) {
      for (double shift = 0; shift < 0.7; shift += 0.1) {
        ExpectRightAnswerWhereMuchIsLeftOut(max_error, spared, shift);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// A store, queries and options at random: among them rows that are alike, of very different sizes
// or zero, and queries that are near a row or far from all.
class RandomLookup {
 public:
  explicit RandomLookup(std::uint64_t seed) : draw_(seed) {
    dim_ = 4 * draw_.Int(8, 20) + draw_.Int(1, 3);
    row_count_ = kernels::kBlockRowsMax * draw_.Int(4, 6) + draw_.Int(0, 40);
    if (draw_.Chance(0.1)) row_count_ += kernels::kBlockRowsMax * 14;
    MakeKeys();
    MakeOptions();
    rows_ = std::make_unique<TestRows>(
        row_count_, dim_, kLookValueDim, keys_, NormalFloats(row_count_ * kLookValueDim, seed),
        draw_.Coin() ? StorageType::kFloat32 : StorageType::kBfloat16);
    MakeQueries();
    if (draw_.Chance(0.3)) {
      allowed_.resize(static_cast<std::size_t>(row_count_));
      const double chance = draw_.Coin() ? 0.9 : 0.01;
      for (std::size_t row = 0; row < allowed_.size(); ++row) allowed_[row] = draw_.Chance(chance);
      rows_->Allow(allowed_);
    }
  }

  void ExpectRight() {
    if (draw_.Chance(0.3)) ChooseMinScore();
    AttentionTask task = rows_->Task(queries_, options_);
    std::vector<bool> allowed = allowed_;
    if (draw_.Chance(0.3)) {
      task.begin = static_cast<std::uint64_t>(draw_.Int(0, 2 * kernels::kBlockRowsMax));
      task.end -= static_cast<std::uint64_t>(draw_.Int(0, kernels::kBlockRowsMax));
      allowed.resize(static_cast<std::size_t>(row_count_), true);
      for (std::size_t row = 0; row < allowed.size(); ++row) {
        if (row < task.begin || row >= task.end) allowed[row] = false;
      }
    }
    ExpectRightAnswer(*rows_, task, allowed);
  }

  std::string ToString() const {
    return absl::StrCat(row_count_, " rows of ", dim_, " score ", static_cast<int>(options_.score),
                        " mode ", static_cast<int>(options_.mode), " top_k ", options_.top_k,
                        " temperature ", options_.temperature, " max_error ", options_.max_error,
                        " key kind ", key_kind_, " key size ", key_size_, " mask ",
                        allowed_.empty() ? "no" : "yes", " min_score ", options_.min_score,
                        " weights ", static_cast<int>(options_.weights), " ", options_.top_weights);
  }

 private:
  // Between the scores of two rows for the first query.
  void ChooseMinScore() {
    std::vector<double> scores = rows_->Reference(rows_->Task(queries_, options_)).scores[0];
    std::sort(scores.rbegin(), scores.rend());
    const auto last = static_cast<double>(scores.size() - 2);
    const auto rank = static_cast<std::size_t>(std::exp(draw_.Real(0, std::log(last))));
    options_.min_score = (scores[rank] + scores[rank + 1]) / 2;
    if (draw_.Chance(0.1)) options_.min_score = scores[0] + std::abs(scores[0]) + 1;
  }

  void MakeKeys() {
    key_size_ = draw_.Chance(0.7) ? 1 : std::exp(draw_.Real(-40, 40));
    keys_ = draw_.Normal(row_count_ * dim_);
    const std::vector<float> centers = draw_.Normal(40 * dim_);
    key_kind_ = draw_.Int(0, 5);
    for (std::int64_t row = 0; row < row_count_; ++row) {
      float* const key = keys_.data() + row * dim_;
      double size = key_size_;
      if (key_kind_ == 2) size *= std::exp(draw_.Real(-30, 0));
      if (key_kind_ == 3 && draw_.Chance(0.01)) size = 0;
      if (key_kind_ == 5 && draw_.Chance(0.001)) size *= 100;
      const float* center = centers.data() + draw_.Int(0, 39) * dim_;
      for (std::int64_t i = 0; i < dim_; ++i) {
        if (key_kind_ == 1) key[i] = center[i] + 0.1f * key[i];
        if (key_kind_ == 4) key[i] = center[i];
        key[i] = static_cast<float>(key[i] * size);
      }
    }
  }

  void MakeQueries() {
    const std::int64_t count = draw_.Chance(0.5) ? 1 : draw_.Int(2, 20);
    queries_ = draw_.Normal(count * dim_, key_size_);
    for (std::int64_t t = 0; t < count; ++t) {
      const float* key = keys_.data() + draw_.Int(0, row_count_ - 1) * dim_;
      const double kind = draw_.Real(0, 1);
      for (std::int64_t i = 0; i < dim_; ++i) {
        float& component = queries_[static_cast<std::size_t>(t * dim_ + i)];
        if (kind < 0.2) component = key[i];
        if (kind > 0.3 && kind < 0.5) component = key[i] + 0.05f * component;
        if (kind > 0.9) component = -key[i];
      }
    }
  }

  void MakeOptions() {
    constexpr Score kScores[] = {Score::kDot, Score::kScaledDot, Score::kCosine, Score::kEuclidean,
                                 Score::kSquaredEuclidean};
    options_.score = kScores[draw_.Int(0, 4)];
    options_.mode = draw_.Chance(0.7) ? Mode::kSoft : Mode::kHard;
    constexpr std::uint64_t kTopKs[] = {1, 5, 100, 5000};
    if (draw_.Chance(0.3)) options_.top_k = kTopKs[draw_.Int(0, 3)];
    if (draw_.Chance(0.4)) {
      options_.weights = draw_.Chance(0.3) ? WeightsMode::kAll : WeightsMode::kTop;
      constexpr std::int64_t kCounts[] = {1, 3, 40, 1000};
      options_.top_weights = kCounts[draw_.Int(0, 3)];
    }
    if (draw_.Chance(0.3)) options_.max_error = std::exp(draw_.Real(-12, 0));
    const double root = key_size_ * std::sqrt(static_cast<double>(dim_));
    const double size = options_.score == Score::kCosine      ? 1
                        : options_.score == Score::kEuclidean ? root
                        : options_.score == Score::kScaledDot ? root * key_size_
                                                              : root * root;
    if (draw_.Chance(0.1)) {
      options_.causal = true;
      options_.causal_offset = static_cast<std::uint64_t>(draw_.Int(0, row_count_));
    }
    options_.temperature = std::clamp(size * std::exp(-draw_.Real(0, draw_.Chance(0.9) ? 9 : 25)),
                                      kTemperatureMin, kTemperatureMax);
  }

  testing::Draw draw_;
  std::int64_t dim_ = 0;
  std::int64_t row_count_ = 0;
  std::int64_t key_kind_ = 0;
  double key_size_ = 1;
  std::vector<float> keys_;
  std::vector<float> queries_;
  ResolvedOptions options_;
  std::unique_ptr<TestRows> rows_;
  std::vector<bool> allowed_;
};

TEST(FirstLookTest, BlocksFarFromAllQueriesAreSkipped) {
  const std::vector<float> keys = KeysByCluster();
  const TestRows rows = RowsOfKeys(keys);
  std::vector<float> queries;
  for (const std::int64_t row : {3000, 3001, 9999}) {  // Of blocks 2 and 9.
    queries.insert(queries.end(), keys.begin() + row * kLookDim,
                   keys.begin() + (row + 1) * kLookDim);
  }
  for (const Score score : {Score::kDot, Score::kScaledDot, Score::kCosine, Score::kEuclidean,
                            Score::kSquaredEuclidean}) {
    for (const Mode mode : {Mode::kSoft, Mode::kHard}) {
      for (const std::uint64_t top_k : {0, 20}) {
        SCOPED_TRACE(::testing::Message() << "score " << static_cast<int>(score) << " mode "
                                          << static_cast<int>(mode) << " top_k " << top_k);
        const AttentionTask task =
            rows.Task(queries, {.score = score, .temperature = 0.01, .mode = mode, .top_k = top_k});
        ExpectRightAnswer(rows, task);
        const ScannedRows read = ReadsOf(task);
        EXPECT_EQ(read.skipped_blocks, 10u);
        EXPECT_EQ(read.sketched_rows, 2u * kernels::kBlockRowsMax);
      }
    }
  }
}

// One query may skip blocks. For the other, which is as far from all clusters, all are alike.
TEST(FirstLookTest, AQueryThatSkipsBlocksHasTheSameBitsBesideOneThatReadsAll) {
  const std::vector<float> keys = KeysByCluster();
  const TestRows rows = RowsOfKeys(keys);
  const ResolvedOptions options{.score = Score::kSquaredEuclidean, .temperature = 1};
  const std::vector<float> near(keys.begin() + 5000 * kLookDim, keys.begin() + 5001 * kLookDim);
  const AttentionTask near_task = rows.Task(near, options);
  const AttentionAnswer alone = MustAttend(near_task);
  EXPECT_GT(ReadsOf(near_task).skipped_blocks, 0u);
  const std::vector<float> middle(kLookDim, 0.0f);
  std::vector<float> both = middle;
  both[0] = 0.01f;  // A query of norm 0 is not looked at.
  const AttentionTask middle_task = rows.Task(both, options);
  EXPECT_EQ(ReadsOf(middle_task).skipped_blocks, 0u);
  both.insert(both.end(), near.begin(), near.end());
  const AttentionTask both_task = rows.Task(both, options);
  const AttentionAnswer together = MustAttend(both_task);
  EXPECT_TRUE(std::equal(alone.values.begin(), alone.values.end(),
                         together.values.begin() + kLookValueDim));
  EXPECT_EQ(alone.stats[0].log_sum_exp, together.stats[1].log_sum_exp);
  EXPECT_EQ(alone.stats[0].error_bound, together.stats[1].error_bound);
  EXPECT_EQ(alone.stats[0].summed_rows, together.stats[1].summed_rows);
}

TEST(FirstLookTest, WhatSkippedBlocksWeighIsInTheErrorBound) {
  const std::vector<float> keys = KeysByCluster();
  const TestRows rows = RowsOfKeys(keys);
  const std::vector<float> query(keys.begin() + 5000 * kLookDim, keys.begin() + 5001 * kLookDim);
  const ResolvedOptions options{
      .score = Score::kSquaredEuclidean, .temperature = 3, .max_error = 1};
  const AttentionTask task = rows.Task(query, options);
  ASSERT_GT(ReadsOf(task).skipped_blocks, 8u);
  // At most three blocks are read, so no more is skipped than the others weigh.
  const ReferenceAnswer expected = rows.Reference(task);
  std::vector<double> masses(expected.scores[0].size() / kernels::kBlockRowsMax);
  for (std::size_t row = 0; row < expected.scores[0].size(); ++row) {
    masses[row / kernels::kBlockRowsMax] +=
        std::exp(expected.scores[0][row] / options.temperature - expected.stats[0].log_sum_exp);
  }
  std::sort(masses.rbegin(), masses.rend());
  double skipped = 0;
  for (std::size_t i = 3; i < masses.size(); ++i) skipped += masses[i];
  ASSERT_GT(skipped, 1e-9);
  EXPECT_GE(MustAttend(task).stats[0].error_bound, ArithmeticError(options, true) + 2 * skipped);
}

// Others that share the pass attend to more blocks, where this query has none.
TEST(FirstLookTest, TinyMassesHaveTheSameBitsBesideALongerRange) {
  constexpr std::int64_t kOwnBlocks = 5, kAllBlocks = 40;
  for (const double max_error : {0.55, 0.5, 0.48, 0.45, 0.42, 0.4}) {
    // Most rows weigh about as little as can be left out without being looked at one by one. Of the
    // others, some are just at the weight below which values are left out.
    const double part = max_error / 4;
    std::vector<float> keys(kAllBlocks * kernels::kBlockRowsMax * kLookDim);
    testing::Draw draw(1);
    for (std::int64_t row = 0; row < kAllBlocks * kernels::kBlockRowsMax; ++row) {
      double weight = 0.7 * part * 0.2 / (kAllBlocks * 32) / kernels::kPanelRows;
      if (row < kernels::kBlockRowsMax) {
        weight = row < 320 ? std::exp(draw.Real(-0.35, -0.1)) * 0.9 * part / 320 : 1e-20;
        if (row % kernels::kPanelRows == 0 && row < 320) weight = row < 32 ? 0.2 : 0.015;
      }
      keys[row * kLookDim] = row == 3000 ? -60.0f : static_cast<float>(std::log(weight));
    }
    const TestRows rows = RowsOfKeys(keys);
    std::vector<float> query(kLookDim);
    query[0] = 1;
    const ResolvedOptions options{.score = Score::kDot, .max_error = max_error};
    AttentionTask few = rows.Task(query, options);
    few.blocks = few.blocks.subspan(0, kOwnBlocks);
    few.end = kOwnBlocks * kernels::kBlockRowsMax;
    const AttentionTask all = rows.Task(query, options);
    const AttentionAnswer alone = MustAttend(few);
    const CancelToken cancel;
    std::vector<SharedTask> shared = {{.task = &few, .cancel = &cancel},
                                      {.task = &all, .cancel = &cancel}};
    AttendTogether(absl::MakeSpan(shared), Pool());
    const AttentionAnswer& together = *shared[0].answer;
    SCOPED_TRACE(max_error);
    EXPECT_EQ(alone.stats[0].summed_rows, together.stats[0].summed_rows);
    EXPECT_EQ(alone.stats[0].error_bound, together.stats[0].error_bound);
    EXPECT_EQ(alone.values, together.values);
  }
}

// All rows weigh about the same, and even a row much like the query would not outweigh the others.
TEST(FirstLookTest, WhereNothingCanBeLeftOutTheLookEndsWithTheSample) {
  const TestRows rows = RowsOfKeys(NormalFloats(4 * kLookRows * kLookDim, 1));
  const std::vector<float> query = NormalFloats(kLookDim, 3);
  const ResolvedOptions flat{.score = Score::kDot, .temperature = 4};
  ResolvedOptions list = flat, threshold = flat;
  list.weights = WeightsMode::kTop;
  threshold.min_score = -1;
  for (const ResolvedOptions& options : {flat, list, threshold}) {
    const AttentionTask task = rows.Task(query, options);
    ExpectRightAnswer(rows, task);
    EXPECT_EQ(ReadsOf(task).sketched_rows, 0u);
    EXPECT_EQ(ReadsOf(task).rows, static_cast<std::uint64_t>(4 * kLookRows));
  }
  // They are looked at, all the same.
  ResolvedOptions peaked = flat;
  peaked.temperature = 0.5;
  EXPECT_GT(ReadsOf(rows.Task(query, peaked)).sketched_rows, 0u);
}

TEST(FirstLookTest, RandomLookupsAreRight) {
  for (std::uint64_t seed = testing::FirstSeed(), end = seed + (testing::kSanitized ? 10 : 100);
       seed < end; ++seed) {
    RandomLookup lookup(seed);
    SCOPED_TRACE(::testing::Message()
                 << "SOFTLOOKUP_TEST_SEED=" << seed << ": " << lookup.ToString());
    lookup.ExpectRight();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace softlookup
