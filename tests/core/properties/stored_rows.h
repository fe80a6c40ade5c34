// The rows of a store, as a test knows them, and what lookups of them have to answer.
#ifndef SOFTLOOKUP_TESTS_CORE_PROPERTIES_STORED_ROWS_H_
#define SOFTLOOKUP_TESTS_CORE_PROPERTIES_STORED_ROWS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/options.h"
#include "core/attention/reference.h"
#include "core/attention/score_pair.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::properties {

using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::IsOk;

struct StoredRows {
  StorageType storage = StorageType::kFloat32;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::vector<float> keys, values;
  std::vector<bool> live;
  std::vector<std::uint64_t> ids;                // Empty: none.
  std::vector<std::vector<std::string>> labels;  // Empty: none.

  std::int64_t count() const { return static_cast<std::int64_t>(live.size()); }
  const float* key(std::int64_t row) const { return &keys[row * key_dim]; }
  const float* value(std::int64_t row) const { return &values[row * value_dim]; }
};

inline void CreateStore(Engine& engine, const std::string& name, const StoredRows& rows) {
  ASSERT_THAT(engine.CreateStore({.name = name,
                                  .key_dim = rows.key_dim,
                                  .value_dim = rows.value_dim,
                                  .storage_type = rows.storage}),
              IsOk());
}

// Appends the rows [begin, end). Replaces those that have their ids.
inline void AppendRows(Engine& engine, const std::string& name, const StoredRows& rows,
                       std::int64_t begin, std::int64_t end) {
  const std::int64_t count = end - begin;
  AppendRequest request{.store = name,
                        .keys = {rows.key(begin), count, rows.key_dim},
                        .values = {rows.value(begin), count, rows.value_dim},
                        .on_conflict = OnConflict::kReplace};
  if (!rows.ids.empty()) request.ids = absl::MakeConstSpan(rows.ids).subspan(begin, count);
  if (!rows.labels.empty()) {
    request.row_labels = absl::MakeConstSpan(rows.labels).subspan(begin, count);
  }
  ASSERT_THAT(AppendAndWait(engine, request), IsOk());
}

// Returns the positions [begin, end) that a filter leaves, by its definition.
inline std::pair<std::uint64_t, std::uint64_t> RangeOf(const RowFilter& filter,
                                                       const StoredRows& rows) {
  const std::uint64_t end = filter.end.value_or(static_cast<std::uint64_t>(rows.count()));
  const std::uint64_t begin = filter.begin.value_or(0);
  return {filter.last ? std::max(begin, end - std::min(end, *filter.last)) : begin, end};
}

// Returns true if the labels and the id of a row pass a filter, by its definition.
inline bool PassesByTags(const RowFilter& filter, const StoredRows& rows, std::uint64_t row) {
  const auto has = [](const auto& list, const auto& item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  };
  const auto has_any = [&](const std::vector<std::string>& wanted) {
    return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& label) {
      return !rows.labels.empty() && has(rows.labels[row], label);
    });
  };
  return (filter.any_labels.empty() || has_any(filter.any_labels)) && !has_any(filter.no_labels) &&
         (rows.ids.empty() || !has(filter.exclude_ids, rows.ids[row]));
}

// What the answer to one query has to be, in float64.
struct Expected {
  std::vector<double> values;
  QueryStats stats;
  double value_magnitude = 0;  // The largest size of a component of a row that passes the filter.
  double linear_size = 0;      // LINEAR: the sum of the sizes of the logits.
  bool is_ranked = false;      // HARD, or a top_k that can leave rows out.
  // Whether float64 cannot tell which rows rank first. One that ranks around there has a score that
  // is a few roundings from another one's. Equal scores are no such case.
  bool is_close_call = false;
  // Whether float64 cannot tell which rows min_score lets count.
  bool is_near_min_score = false;
};

// Adds a running memory to the answer to a SOFT query.
inline void AddMemory(const MemoryState& memory, const float* query, const ResolvedOptions& options,
                      Expected& expected) {
  const MemoryValue& pair = memory.memory;
  const double score =
      ScorePair(options.score, query, pair.key.data(), static_cast<std::int64_t>(pair.key.size()));
  const double logit =
      score / options.temperature + std::log(static_cast<double>(memory.end - memory.begin));
  QueryStats& stats = expected.stats;
  const double larger = std::max(stats.log_sum_exp, logit);
  const double sum =
      larger + std::log(std::exp(stats.log_sum_exp - larger) + std::exp(logit - larger));
  const double of_rows = std::exp(stats.log_sum_exp - sum), of_memory = std::exp(logit - sum);
  const auto term = [](double weight) { return weight > 0 ? -weight * std::log(weight) : 0; };
  stats.entropy = of_rows * stats.entropy + term(of_rows) + term(of_memory);
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    expected.values[i] = of_rows * expected.values[i] + of_memory * pair.value[i];
    expected.value_magnitude = std::max(expected.value_magnitude, std::abs(pair.value[i]));
  }
  stats.log_sum_exp = sum;
  stats.max_logit = std::max(stats.max_logit, logit);
  ++stats.counted_rows;
}

// `scores` are those of the rows that count before top_k.
inline bool IsCloseCall(std::vector<double> scores, std::int64_t count, std::int64_t key_dim) {
  if (static_cast<std::int64_t>(scores.size()) <= count) return false;
  std::nth_element(scores.begin(), scores.begin() + (count - 1), scores.end(), std::greater<>());
  const double last = scores[count - 1];
  const double near = static_cast<double>(key_dim) * 0x1p-52 * std::abs(last);
  return std::any_of(scores.begin(), scores.end(),
                     [&](double score) { return score != last && std::abs(score - last) <= near; });
}

// Returns true if float64 does not tell on which side of min_score a row is.
inline bool IsNearMinScore(const std::vector<double>& scores, double min_score) {
  double size = 0;
  for (const double score : scores) size = std::max(size, std::abs(score));
  return std::any_of(scores.begin(), scores.end(),
                     [&](double score) { return std::abs(score - min_score) <= 1e-10 * size; });
}

// Returns the answer to a query of a lookup in the store that holds `rows` in `engine`.
inline Expected Expect(const StoredRows& rows, const LookupRequest& request, std::int64_t query,
                       Engine& engine) {
  ReferenceTask task;
  const auto options = ResolveOptions(request.options, Score::kScaledDot, 1, engine.limits());
  EXPECT_THAT(options, IsOk());
  task.options = *options;
  task.options.causal_offset += static_cast<std::uint64_t>(query);
  task.queries = {.data = request.queries.row(query), .rows = 1, .cols = rows.key_dim};
  task.keys = {.data = rows.keys.data(), .rows = rows.count(), .cols = rows.key_dim};
  task.values = {.data = rows.values.data(), .rows = rows.count(), .cols = rows.value_dim};
  task.allowed.resize(rows.live.size());
  const auto [begin, end] = RangeOf(request.filter, rows);
  for (std::uint64_t row = begin; row < end; ++row) {
    task.allowed[row] = rows.live[row] && PassesByTags(request.filter, rows, row);
  }
  ReferenceAnswer answer = ReferenceAttend(task);
  Expected expected{.values = std::move(answer.values), .stats = answer.stats[0]};
  const bool is_hard = task.options.mode == Mode::kHard;
  expected.is_ranked = is_hard || (task.options.top_k > 0 && task.options.top_k < end - begin);
  std::vector<double> scores, all_scores;
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    if (!task.allowed[row] ||
        (task.options.causal && static_cast<std::uint64_t>(row) > task.options.causal_offset)) {
      continue;
    }
    const double score = answer.scores[0][row];
    all_scores.push_back(score);
    if (score < task.options.min_score) continue;
    scores.push_back(score);
    expected.linear_size += std::abs(scores.back()) / task.options.temperature;
    for (std::int64_t i = 0; i < rows.value_dim; ++i) {
      expected.value_magnitude =
          std::max(expected.value_magnitude, std::abs(static_cast<double>(rows.value(row)[i])));
    }
  }
  expected.is_near_min_score = IsNearMinScore(all_scores, task.options.min_score);
  if (expected.is_ranked) {
    const std::int64_t count = is_hard ? 1 : static_cast<std::int64_t>(task.options.top_k);
    expected.is_close_call = IsCloseCall(std::move(scores), count, rows.key_dim);
  }
  if (request.source == Source::kRowsAndMemory) {
    const auto memory = engine.GetMemory(request.store, "", {}, begin);
    EXPECT_THAT(memory, IsOk());
    AddMemory(*memory, task.queries.data, task.options, expected);
  }
  return expected;
}

// Checks the answer to one query. `values` points to its components.
inline void ExpectWithinBounds(const AttentionOptions& options, std::int64_t key_dim,
                               const Expected& expected, const QueryStats& stats,
                               const float* values) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kFloatMax = std::numeric_limits<float>::max();
  const std::size_t value_dim = expected.values.size();
  if (expected.is_near_min_score) return;
  ASSERT_EQ(stats.counted_rows, expected.stats.counted_rows);
  ASSERT_LE(stats.summed_rows, stats.counted_rows);
  if (stats.counted_rows == 0) {
    ASSERT_EQ(stats.log_sum_exp, -kInfinity);
    ASSERT_EQ(stats.max_logit, -kInfinity);
    for (std::size_t i = 0; i < value_dim; ++i) ASSERT_EQ(values[i], 0);
    return;
  }
  ASSERT_GE(stats.summed_rows, 1u);
  // The error in float64 of a logit that matters. It grows in proportion to the logit.
  const double noise =
      static_cast<double>(key_dim + 8) * 0x1p-52 * (std::abs(expected.stats.max_logit) + 45);
  const auto expect_values = [&](double error, double size) {
    for (std::size_t i = 0; i < value_dim; ++i) {
      const double value = std::clamp(expected.values[i], -kFloatMax, kFloatMax);
      const double rounding = std::abs(value) * 0x1p-23 + 0x1p-149;
      ASSERT_NEAR(values[i], value, (error + noise) * size + rounding)
          << "component " << i << " of values up to " << expected.value_magnitude << ", max_logit "
          << expected.stats.max_logit;
    }
  };
  if (options.mode == Mode::kLinear) {
    ASSERT_NEAR(stats.max_logit, expected.stats.max_logit, noise);
    expect_values(kErrorBoundDefault, expected.value_magnitude * expected.linear_size);
    return;
  }
  if (expected.is_ranked) {
    const bool is_hard = options.mode == Mode::kHard;
    ASSERT_NEAR(stats.max_logit, expected.stats.max_logit, noise);
    ASSERT_EQ(stats.summed_rows, is_hard ? 1 : stats.counted_rows);
    if (expected.is_close_call) return;
    if (is_hard) {
      for (std::size_t i = 0; i < value_dim; ++i) {
        ASSERT_EQ(values[i], static_cast<float>(expected.values[i])) << "component " << i;
      }
      ASSERT_EQ(stats.error_bound, 0);
      return;
    }
    ASSERT_LE(stats.error_bound, kErrorBoundDefault);
    // With other rows, the answer would be further off.
    expect_values(1e-12, expected.value_magnitude);
    ASSERT_NEAR(stats.log_sum_exp, expected.stats.log_sum_exp, 1e-12 + noise);
    return;
  }
  const double allowed = std::max(options.max_error.value_or(0), kErrorBoundDefault);
  ASSERT_GE(stats.error_bound, 0);
  ASSERT_LE(stats.error_bound, allowed);
  expect_values(stats.error_bound, expected.value_magnitude);
  ASSERT_NEAR(stats.log_sum_exp, expected.stats.log_sum_exp, allowed + noise);
  ASSERT_NEAR(stats.max_logit, expected.stats.max_logit, allowed + noise);
  const double counted = static_cast<double>(stats.counted_rows);
  ASSERT_NEAR(stats.entropy, expected.stats.entropy,
              allowed * (1 + std::log(counted / allowed)) + 100 * noise);
}

inline void ExpectSameBits(const QueryStats& actual, const QueryStats& expected) {
  ASSERT_EQ(actual.log_sum_exp, expected.log_sum_exp);
  ASSERT_EQ(actual.max_logit, expected.max_logit);
  ASSERT_EQ(actual.counted_rows, expected.counted_rows);
  ASSERT_EQ(actual.entropy, expected.entropy);
  ASSERT_EQ(actual.error_bound, expected.error_bound);
  ASSERT_EQ(actual.summed_rows, expected.summed_rows);
}

inline void ExpectSameBits(const QueryWeights& actual, const QueryWeights& expected) {
  ASSERT_EQ(actual.rows.size(), expected.rows.size());
  for (std::size_t i = 0; i < expected.rows.size(); ++i) {
    ASSERT_EQ(actual.rows[i].position, expected.rows[i].position) << "place " << i;
    ASSERT_EQ(actual.rows[i].weight, expected.rows[i].weight) << "place " << i;
    ASSERT_EQ(actual.rows[i].score, expected.rows[i].score) << "place " << i;
  }
  ASSERT_EQ(actual.remaining_weight, expected.remaining_weight);
}

inline void ExpectSameBits(const LookupResult& actual, const LookupResult& expected) {
  ASSERT_EQ(actual.values, expected.values);
  ASSERT_EQ(actual.stats.size(), expected.stats.size());
  for (std::size_t i = 0; i < expected.stats.size(); ++i) {
    SCOPED_TRACE("query " + std::to_string(i));
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(actual.stats[i], expected.stats[i]));
  }
  ASSERT_EQ(actual.weights.size(), expected.weights.size());
  for (std::size_t i = 0; i < expected.weights.size(); ++i) {
    SCOPED_TRACE("list " + std::to_string(i));
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(actual.weights[i], expected.weights[i]));
  }
}

}  // namespace softlookup::properties

#endif  // SOFTLOOKUP_TESTS_CORE_PROPERTIES_STORED_ROWS_H_
