#ifndef SOFTLOOKUP_TESTS_CORE_ATTENTION_MERGED_PARTS_H_
#define SOFTLOOKUP_TESTS_CORE_ATTENTION_MERGED_PARTS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/attention/attend.h"
#include "core/attention/head_queries.h"
#include "core/attention/row_values.h"
#include "softlookup/partial_lookup.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/status_matchers.h"

// Tasks that are cut into ranges of positions, and the answers of the ranges merged.
namespace softlookup {

// Returns the ranges between the positions `cuts`, which ascend: one more than there are cuts.
inline std::vector<PositionRange> RangesBetween(const std::vector<std::uint64_t>& cuts) {
  std::vector<PositionRange> ranges(1);
  for (const std::uint64_t cut : cuts) {
    ranges.back().end = cut;
    ranges.push_back({.begin = cut});
  }
  return ranges;
}

// Returns `count` ranges of about equally many of `row_count` positions.
inline std::vector<PositionRange> EqualRanges(std::uint64_t row_count, std::uint64_t count) {
  std::vector<std::uint64_t> cuts;
  for (std::uint64_t i = 1; i < count; ++i) cuts.push_back(row_count * i / count);
  return RangesBetween(cuts);
}

// Returns the part of `whole` that the range has.
inline AttentionTask PartOf(const AttentionTask& whole, const PositionRange& range) {
  AttentionTask part = whole;
  part.summary = nullptr;
  part.whole = WholeTask{.begin = whole.begin, .end = whole.end, .memory = ShapeOf(whole).memory};
  part.end = std::clamp(range.end, whole.begin, whole.end);
  part.begin = std::clamp(range.begin, whole.begin, part.end);
  if (part.memory && !range.Has(part.memory->position)) part.memory.reset();
  const auto first = std::ranges::find_if(whole.blocks, [&](const PositionedBlock& block) {
    return block.end_position() > part.begin;
  });
  const auto behind = std::find_if(first, whole.blocks.end(), [&](const PositionedBlock& block) {
    return block.first_position >= part.end;
  });
  part.blocks = whole.blocks.subspan(static_cast<std::size_t>(first - whole.blocks.begin()),
                                     static_cast<std::size_t>(behind - first));
  return part;
}

inline PartialLookup AnswerOfPart(const AttentionTask& whole, const PositionRange& range,
                                  ForkJoinPool& pool = Pool()) {
  const AttentionTask part = PartOf(whole, range);
  return {.shape = ShapeOf(part),
          .attended = {.begin = whole.begin, .end = whole.end},
          .revision = 7,
          .row_count = whole.end,
          .range = range,
          .answers = MustAttend(part, pool).partials};
}

// Returns what the range answers in the second phase.
inline RowSums SumsOfPart(const AttentionTask& whole, const PositionRange& range,
                          const RowSumsRequest& request) {
  const AttentionTask part = PartOf(whole, range);
  const RowValues values(part);
  RowSums sums;
  for (std::size_t q = 0; q < request.rows.size(); ++q) {
    for (const WeighedRow& row : request.rows[q]) EXPECT_TRUE(values.Has(row.position));
    const std::vector<double> sum = values.SumOf(static_cast<std::int64_t>(q) % whole.num_heads,
                                                 request.rows[q], [] { return true; });
    sums.sums.insert(sums.sums.end(), sum.begin(), sum.end());
  }
  return sums;
}

// Returns the answer to `whole` whose rows are spread over the ranges.
inline LookupResult AttendInParts(const AttentionTask& whole,
                                  const std::vector<PositionRange>& ranges,
                                  ForkJoinPool& pool = Pool()) {
  const auto goes_on = [] { return true; };
  std::vector<PartialLookup> parts;
  for (const PositionRange& range : ranges) parts.push_back(AnswerOfPart(whole, range, pool));
  absl::StatusOr<MergedLookup> merged =
      MergedLookup::Merge(std::move(parts), whole.answer_bytes_max, goes_on);
  EXPECT_THAT(merged, testing::IsOk());
  if (!merged.ok()) return {};
  std::vector<RowSums> sums(ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const RowSumsRequest& request = merged->requests()[i];
    if (!request.empty()) sums[i] = SumsOfPart(whole, ranges[i], request);
  }
  const absl::StatusOr<LookupResult> result = merged->Finish(sums, [] { return true; });
  EXPECT_THAT(result, testing::IsOk());
  return result.ok() ? *result : LookupResult();
}

// Expects the same bits in both.
inline void ExpectSameBits(const LookupResult& actual, const AttentionAnswer& expected) {
  ASSERT_EQ(actual.values, expected.values);
  ASSERT_EQ(actual.stats.size(), expected.stats.size());
  for (std::size_t i = 0; i < actual.stats.size(); ++i) {
    const QueryStats &a = actual.stats[i], &e = expected.stats[i];
    ASSERT_EQ(a.log_sum_exp, e.log_sum_exp);
    ASSERT_EQ(a.max_logit, e.max_logit);
    ASSERT_EQ(a.counted_rows, e.counted_rows);
    ASSERT_EQ(a.entropy, e.entropy);
    ASSERT_EQ(a.error_bound, e.error_bound);
    ASSERT_EQ(a.summed_rows, e.summed_rows);
  }
  ASSERT_EQ(actual.weights.size(), expected.weights.size());
  for (std::size_t i = 0; i < actual.weights.size(); ++i) {
    const QueryWeights &a = actual.weights[i], &e = expected.weights[i];
    ASSERT_EQ(a.remaining_weight, e.remaining_weight);
    ASSERT_EQ(a.rows.size(), e.rows.size());
    for (std::size_t r = 0; r < a.rows.size(); ++r) {
      ASSERT_EQ(a.rows[r].position, e.rows[r].position);
      ASSERT_EQ(a.rows[r].weight, e.rows[r].weight);
      ASSERT_EQ(a.rows[r].score, e.rows[r].score);
    }
  }
}

// How far merged answers may be from those of one machine.
struct MergeTolerance {
  double relative = 1e-6;
  // What errors of values are relative to, if it is larger than the largest component of one
  // machine's answer. Terms of a sum can cancel.
  double value_size = 0;
  // What errors of weights are relative to. 1, or in LINEAR mode the sum of their sizes.
  double weight_size = 1;
};

inline void ExpectNear(double actual, double expected, double tolerance) {
  if (std::isinf(expected)) {
    ASSERT_EQ(actual, expected);
  } else {
    ASSERT_NEAR(actual, expected, tolerance * std::max(1.0, std::abs(expected)));
  }
}

// Expects the answers to be alike, and to name the same rows in the same order.
inline void ExpectSameAnswer(const LookupResult& actual, const AttentionAnswer& expected,
                             const MergeTolerance& tolerance = {}) {
  const double relative = tolerance.relative;
  double size = std::max(tolerance.value_size, 1e-30);
  for (const float value : expected.values) {
    size = std::max(size, std::abs(static_cast<double>(value)));
  }
  ASSERT_EQ(actual.values.size(), expected.values.size());
  for (std::size_t i = 0; i < actual.values.size(); ++i) {
    ASSERT_NEAR(actual.values[i], expected.values[i], relative * size) << i;
  }
  ASSERT_EQ(actual.stats.size(), expected.stats.size());
  for (std::size_t i = 0; i < actual.stats.size(); ++i) {
    const QueryStats &a = actual.stats[i], &e = expected.stats[i];
    ASSERT_EQ(a.counted_rows, e.counted_rows) << i;
    ASSERT_NO_FATAL_FAILURE(ExpectNear(a.log_sum_exp, e.log_sum_exp, relative));
    ASSERT_NO_FATAL_FAILURE(ExpectNear(a.max_logit, e.max_logit, relative));
    // A small weight w counts as -w ln w.
    const double entropy = relative * (1 + std::log(static_cast<double>(e.counted_rows + 1)));
    ASSERT_NO_FATAL_FAILURE(ExpectNear(a.entropy, e.entropy, entropy));
    ASSERT_LE(a.summed_rows, a.counted_rows);
  }
  ASSERT_EQ(actual.weights.size(), expected.weights.size());
  const double weight = relative * tolerance.weight_size;
  for (std::size_t i = 0; i < actual.weights.size(); ++i) {
    const QueryWeights &a = actual.weights[i], &e = expected.weights[i];
    ASSERT_EQ(a.rows.size(), e.rows.size());
    for (std::size_t r = 0; r < a.rows.size(); ++r) {
      ASSERT_EQ(a.rows[r].position, e.rows[r].position) << r;
      ASSERT_NO_FATAL_FAILURE(ExpectNear(a.rows[r].weight, e.rows[r].weight, relative));
      ASSERT_NO_FATAL_FAILURE(ExpectNear(a.rows[r].score, e.rows[r].score, relative));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectNear(a.remaining_weight, e.remaining_weight, weight));
  }
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_TESTS_CORE_ATTENTION_MERGED_PARTS_H_
