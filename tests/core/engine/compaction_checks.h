#ifndef SOFTLOOKUP_TESTS_CORE_ENGINE_COMPACTION_CHECKS_H_
#define SOFTLOOKUP_TESTS_CORE_ENGINE_COMPACTION_CHECKS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/cancellation.h"
#include "softlookup/engine.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {

// Compacts the store `name` to the end.
inline absl::StatusOr<CompactionResult> CompactNow(Engine& engine, const std::string& name = "s",
                                                   bool end_memories = true) {
  return engine.CompactStore({.store = name, .end_memories = end_memories}, CancelToken());
}

// The rows of the store "s" that pass `filter`.
inline std::vector<Row> AllRowsIn(Engine& engine, const RowFilter& filter = {}) {
  const auto reader = engine.ReadRows("s", filter);
  EXPECT_THAT(reader, IsOk());
  std::vector<Row> rows;
  if (!reader.ok()) return rows;
  for (;;) {
    std::vector<Row> next = (*reader)->Next(500);
    if (next.empty()) return rows;
    for (Row& row : next) rows.push_back(std::move(row));
  }
}

inline void ExpectSameRows(const std::vector<Row>& actual, const std::vector<Row>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].position, expected[i].position);
    ASSERT_EQ(actual[i].id, expected[i].id) << expected[i].position;
    ASSERT_EQ(actual[i].labels, expected[i].labels) << expected[i].position;
    ASSERT_EQ(actual[i].key, expected[i].key) << expected[i].position;
    ASSERT_EQ(actual[i].value, expected[i].value) << expected[i].position;
  }
}

// All of an answer but its revision.
inline void ExpectSameAnswers(const LookupResult& actual, const LookupResult& expected) {
  ASSERT_EQ(actual.values, expected.values);
  ASSERT_EQ(actual.row_count, expected.row_count);
  ASSERT_EQ(actual.stats.size(), expected.stats.size());
  for (std::size_t i = 0; i < expected.stats.size(); ++i) {
    ASSERT_EQ(actual.stats[i].log_sum_exp, expected.stats[i].log_sum_exp);
    ASSERT_EQ(actual.stats[i].max_logit, expected.stats[i].max_logit);
    ASSERT_EQ(actual.stats[i].counted_rows, expected.stats[i].counted_rows);
    ASSERT_EQ(actual.stats[i].entropy, expected.stats[i].entropy);
    ASSERT_EQ(actual.stats[i].error_bound, expected.stats[i].error_bound);
    ASSERT_EQ(actual.stats[i].summed_rows, expected.stats[i].summed_rows);
  }
  ASSERT_EQ(actual.weights.size(), expected.weights.size());
  for (std::size_t i = 0; i < expected.weights.size(); ++i) {
    ASSERT_EQ(actual.weights[i].remaining_weight, expected.weights[i].remaining_weight);
    ASSERT_EQ(actual.weights[i].rows.size(), expected.weights[i].rows.size());
    for (std::size_t row = 0; row < expected.weights[i].rows.size(); ++row) {
      const WeightedRow &a = actual.weights[i].rows[row], &e = expected.weights[i].rows[row];
      ASSERT_EQ(a.position, e.position);
      ASSERT_EQ(a.id, e.id);
      ASSERT_EQ(a.weight, e.weight);
      ASSERT_EQ(a.score, e.score);
    }
  }
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_ENGINE_COMPACTION_CHECKS_H_
