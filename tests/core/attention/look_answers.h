#ifndef SOFTLOOKUP_TESTS_CORE_ATTENTION_LOOK_ANSWERS_H_
#define SOFTLOOKUP_TESTS_CORE_ATTENTION_LOOK_ANSWERS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/attention/error_budget.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/random.h"

// Answers of two looks, against those of all rows in float64.
namespace softlookup {

// Blocks have a sketch only in stores of a single head. TestRows makes such a store if key_dim is
// not a multiple of 4.
inline constexpr std::int64_t kLookDim = 33, kLookBlocks = 5, kLookValueDim = 3;
inline constexpr std::int64_t kLookRows = kLookBlocks * kernels::kBlockRowsMax;
inline constexpr double kValueMax = 5;  // No value's component is larger.

inline TestRows RowsOfKeys(std::vector<float> keys, std::int64_t dim = kLookDim) {
  const std::int64_t row_count = static_cast<std::int64_t>(keys.size()) / dim;
  return {row_count, dim, kLookValueDim, std::move(keys),
          testing::NormalFloats(row_count * kLookValueDim, 2)};
}

// Returns true if the rows of an answer depend on logits so near to each other that float64 may
// order them either way.
inline bool IsClose(const ResolvedOptions& options, std::vector<double> logits) {
  const std::size_t ranks = options.mode == Mode::kHard ? 1 : options.top_k;
  if (ranks == 0 || ranks >= logits.size()) return false;
  std::sort(logits.rbegin(), logits.rend());
  const double largest = std::max(std::abs(logits.front()), std::abs(logits.back()));
  return logits[ranks - 1] - logits[ranks] < 1e-9 * largest;
}

// The same of which rows min_score lets count.
inline bool IsNearMinScore(const ResolvedOptions& options, const std::vector<double>& scores) {
  double size = 0;
  for (const double score : scores) size = std::max(size, std::abs(score));
  return std::ranges::any_of(
      scores, [&](double score) { return std::abs(score - options.min_score) < 1e-9 * size; });
}

// What a query's list is compared with: the reference's numbers of each row.
struct ExpectedRows {
  std::vector<double> scores;
  std::vector<double> weights;
  std::vector<bool> counts;
  double rounding = 0;  // Scores can differ by this.
};

// The list has the rows that it must have, in their order, with their scores and weights.
inline void ExpectRightList(const ResolvedOptions& options, const ExpectedRows& rows,
                            double error_max, const QueryWeights& list) {
  const auto counted = static_cast<std::uint64_t>(std::ranges::count(rows.counts, true));
  std::uint64_t size = options.weights == WeightsMode::kTop
                           ? static_cast<std::uint64_t>(options.top_weights)
                           : counted;
  if (options.top_k > 0) size = std::min(size, options.top_k);
  ASSERT_EQ(list.rows.size(), std::min(size, counted));
  if (list.rows.empty()) return;
  std::vector<bool> listed(rows.counts.size());
  for (std::size_t i = 0; i < list.rows.size(); ++i) {
    const WeightedRow& row = list.rows[i];
    ASSERT_TRUE(rows.counts[row.position] && !listed[row.position]) << row.position;
    listed[row.position] = true;
    ASSERT_NEAR(row.score, rows.scores[row.position], rows.rounding);
    ASSERT_NEAR(row.weight, rows.weights[row.position], error_max);
    if (i == 0) continue;
    ASSERT_GE(list.rows[i - 1].weight, row.weight);
    if (list.rows[i - 1].weight == row.weight) {
      ASSERT_LT(list.rows[i - 1].position, row.position);
    }
  }
  // Others have less weight, or none and higher positions.
  const WeightedRow& last = list.rows.back();
  for (std::size_t row = 0; row < listed.size(); ++row) {
    if (!rows.counts[row] || listed[row]) continue;
    if (last.weight > 0) {
      ASSERT_LE(rows.scores[row], rows.scores[last.position] + rows.rounding) << row;
    } else {
      ASSERT_LT(rows.weights[row], 1e-300) << row;
      // A row may be selected before it is listed.
      if (rows.weights[row] == 0 && options.top_k == 0) {
        ASSERT_GT(row, last.position);
      }
    }
  }
}

// The answer to the task has at most the error that it states, and states one within the bound.
// `Answer` is AttentionAnswer or LookupResult.
template <typename Answer>
void ExpectRight(const TestRows& rows, const AttentionTask& task, const Answer& answer,
                 const std::vector<bool>& allowed = {}) {
  const ReferenceAnswer expected = rows.Reference(task, allowed);
  const bool selects = task.options.top_k > 0 && task.options.top_k < task.end - task.begin;
  const bool weighs_all = task.options.mode == Mode::kSoft && !selects;
  for (std::size_t t = 0; t < expected.stats.size(); ++t) {
    const QueryStats& stats = answer.stats[t];
    SCOPED_TRACE(::testing::Message() << "query " << t << ", " << stats.summed_rows << " summed");
    if (IsNearMinScore(task.options, expected.scores[t])) continue;
    ASSERT_EQ(stats.counted_rows, expected.stats[t].counted_rows);
    if (stats.counted_rows == 0) continue;
    const double error_max = std::max(kErrorBoundDefault, task.options.max_error);
    const double max_logit = expected.stats[t].max_logit;
    std::vector<double> logits;
    ExpectedRows listed{.scores = expected.scores[t], .weights = expected.weights[t]};
    double size = 0;
    for (std::size_t j = 0; j < expected.scores[t].size(); ++j) {
      const double logit = expected.scores[t][j] / task.options.temperature;
      size = std::max(size, std::abs(logit));
      const bool is_late = task.options.causal && j > task.options.causal_offset + t;
      const bool counts = (allowed.empty() || allowed[j]) && !is_late &&
                          expected.scores[t][j] >= task.options.min_score;
      listed.counts.push_back(counts);
      if (counts) logits.push_back(logit);
    }
    // A scan of all rows lists logits of the accuracy that weights need.
    const bool may_be_float32 = weighs_all && stats.summed_rows == stats.counted_rows;
    listed.rounding = ((may_be_float32 ? error_max : 0) + 1e-9 * size) * task.options.temperature;
    ASSERT_NEAR(stats.max_logit, max_logit, (weighs_all ? error_max : 0) + size * 1e-12);
    ASSERT_LE(stats.error_bound, error_max);
    if (weighs_all) {
      // Rounding errors grow with logits above 128.
      const double rounding = 1e-7 * size;
      ASSERT_NEAR(stats.log_sum_exp, expected.stats[t].log_sum_exp, error_max + rounding);
      const auto rows_per_error = static_cast<double>(stats.counted_rows) / error_max;
      ASSERT_NEAR(stats.entropy, expected.stats[t].entropy,
                  error_max * (1 + std::log(rows_per_error)) + rounding);
    }
    if (IsClose(task.options, std::move(logits))) continue;
    if (task.options.weights != WeightsMode::kNone) {
      ASSERT_NO_FATAL_FAILURE(ExpectRightList(task.options, listed, error_max, answer.weights[t]));
    }
    for (std::size_t i = t * kLookValueDim; i < (t + 1) * kLookValueDim; ++i) {
      ASSERT_NEAR(answer.values[i], expected.values[i], kValueMax * stats.error_bound + 1e-6);
    }
  }
}

inline void ExpectRightAnswer(const TestRows& rows, const AttentionTask& task,
                              const std::vector<bool>& allowed = {}) {
  ExpectRight(rows, task, MustAttend(task), allowed);
}

// Rows of 12 clusters, of which each fills a block.
inline std::vector<float> KeysByCluster(std::int64_t clusters = 12) {
  const std::vector<float> centres = testing::NormalFloats(clusters * kLookDim, 11);
  std::vector<float> keys =
      testing::NormalFloats(clusters * kernels::kBlockRowsMax * kLookDim, 12, /*deviation=*/0.05);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t row = i / kLookDim, cluster = row / kernels::kBlockRowsMax;
    keys[i] += centres[cluster * kLookDim + i % kLookDim];
  }
  return keys;
}

inline ScannedRows ReadsOf(const AttentionTask& task) {
  ForkJoinPool pool(2, 1);
  const CancelToken cancel;
  SharedTask shared{.task = &task, .cancel = &cancel};
  return AttendTogether({&shared, 1}, pool);
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_TESTS_CORE_ATTENTION_LOOK_ANSWERS_H_
