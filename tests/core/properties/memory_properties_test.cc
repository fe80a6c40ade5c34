#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tests/core/properties/property_test.h"

namespace softlookup::properties {
namespace {

using MemoryPropertyTest = PropertyTest;

TEST_P(MemoryPropertyTest, TheAverageOfAWindowIsTheDifferenceOfPrefixes) {
  ForRandomCases([&](Draw& draw) {
    const Shape shape = RandomShape(draw);
    const std::int64_t row_count = RowCount(draw);
    const double size = std::pow(10.0, draw.Real(-3, 3));
    std::vector<float> keys = draw.Normal(row_count * shape.key_dim, size);
    std::vector<float> values = draw.Normal(row_count * shape.value_dim, size);
    Create(shape, {{.name = "mean", .kind = MemoryKind::kAverage}});
    Append(draw, shape, keys, values);
    ReadBack(draw, keys, values);
    const std::int64_t begin = draw.Int(0, row_count), end = draw.Int(begin, row_count);
    const std::string name = draw.Chance(0.5) ? "mean" : "average";
    const MemoryState window = Memory(name, begin, end);
    const MemoryState before = Memory(name, {}, begin), until = Memory(name, {}, end);
    ASSERT_EQ(window.begin, static_cast<std::uint64_t>(begin));
    ASSERT_EQ(window.end, static_cast<std::uint64_t>(end));
    ASSERT_EQ(window.memory.weight, static_cast<double>(end - begin));
    ASSERT_EQ(before.memory.weight, static_cast<double>(begin));
    const auto check = [&](const std::vector<float>& rows, std::int64_t dim,
                           const std::vector<double> MemoryValue::*part) {
      ASSERT_EQ((window.memory.*part).size(), static_cast<std::size_t>(dim));
      for (std::int64_t i = 0; i < dim; ++i) {
        double magnitude = 0;
        for (std::int64_t row = 0; row < end; ++row) magnitude += std::abs(rows[row * dim + i]);
        const double difference = (until.memory.*part)[i] * static_cast<double>(end) -
                                  (before.memory.*part)[i] * static_cast<double>(begin);
        ASSERT_NEAR((window.memory.*part)[i] * static_cast<double>(end - begin), difference,
                    1e-13 * magnitude);
        long double sum = 0;
        for (std::int64_t row = begin; row < end; ++row) sum += rows[row * dim + i];
        ASSERT_NEAR(difference, static_cast<double>(sum), 1e-13 * magnitude);
      }
    };
    check(keys, shape.key_dim, &MemoryValue::key);
    check(values, shape.value_dim, &MemoryValue::value);
  });
}

TEST_P(MemoryPropertyTest, ADecayedMemoryTendsToTheSumAsItsDecayTendsToOne) {
  ForRandomCases([&](Draw& draw) {
    const Shape shape = RandomShape(draw);
    const std::int64_t row_count = RowCount(draw);
    std::vector<float> keys = Vectors(draw, row_count, shape);
    std::vector<float> values = draw.Normal(row_count * shape.value_dim);
    std::vector<MemorySpec> memories;
    const std::vector<double> gaps = {1e-4, 1e-6, 1e-8, 1e-12};
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      memories.push_back({.name = "sum" + std::to_string(i),
                          .kind = MemoryKind::kDecayedSum,
                          .decay = 1 - gaps[i]});
      memories.push_back({.name = "mean" + std::to_string(i),
                          .kind = MemoryKind::kDecayedAverage,
                          .decay = 1 - gaps[i]});
    }
    Create(shape, memories);
    Append(draw, shape, keys, values);
    ReadBack(draw, keys, values);
    const std::int64_t end = draw.Int(1, row_count);
    const double count = static_cast<double>(end);
    const MemoryState average = Memory("average", {}, end);
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      const MemoryState sum = Memory("sum" + std::to_string(i), {}, end);
      const MemoryState mean = Memory("mean" + std::to_string(i), {}, end);
      // 1 - decay^age <= age * gap, and of no row is the age above count.
      const double forgotten = count * gaps[i] + 1e-13 * count;
      ASSERT_NEAR(sum.memory.weight, count, forgotten * count);
      const double decay = memories[2 * i].decay;
      ASSERT_NEAR(sum.memory.weight, -std::expm1(count * std::log(decay)) / (1 - decay),
                  1e-12 * count * count);
      ASSERT_EQ(mean.memory.weight, sum.memory.weight);
      const auto check = [&](const std::vector<float>& rows, std::int64_t dim,
                             const std::vector<double> MemoryValue::*part) {
        for (std::int64_t c = 0; c < dim; ++c) {
          double magnitude = 0;
          for (std::int64_t row = 0; row < end; ++row) magnitude += std::abs(rows[row * dim + c]);
          ASSERT_NEAR((sum.memory.*part)[c], (average.memory.*part)[c] * count,
                      forgotten * magnitude);
          ASSERT_NEAR((mean.memory.*part)[c], (average.memory.*part)[c],
                      2 * forgotten * magnitude / count);
        }
      };
      check(keys, shape.key_dim, &MemoryValue::key);
      check(values, shape.value_dim, &MemoryValue::value);
    }
  });
}

TEST_P(MemoryPropertyTest, RowsAndMemoryWithNoOlderRowsIsRows) {
  ForRandomCases([&](Draw& draw) {
    const Shape shape = RandomShape(draw);
    const std::int64_t row_count = RowCount(draw);
    Create(shape);
    Append(draw, shape, Vectors(draw, row_count, shape), draw.Normal(row_count * shape.value_dim));
    AttentionOptions options = RandomOptions(draw);
    options.mode = static_cast<Mode>(draw.Int(1, 3));
    options.top_k = draw.Chance(0.3) ? static_cast<std::uint32_t>(draw.Int(1, 8)) : 0;
    if (draw.Chance(0.3)) options.min_score = draw.Real(-1.5, 0.5);
    if (draw.Chance(0.3)) options.recency_decay = draw.Real(0.9, 1);
    options.causal = draw.Chance(0.3);
    RowFilter filter;
    if (draw.Chance(0.5)) filter.begin = 0;
    if (draw.Chance(0.5)) filter.end = draw.Int(0, row_count);
    if (draw.Chance(0.5)) filter.last = row_count;
    const std::vector<float> queries = Vectors(draw, draw.Int(1, 4), shape);
    const LookupResult expected = Lookup(queries, shape, options, filter, Source::kRows);
    const LookupResult actual = Lookup(queries, shape, options, filter, Source::kRowsAndMemory);
    ASSERT_EQ(actual.values, expected.values);
    ASSERT_EQ(actual.stats.size(), expected.stats.size());
    for (std::size_t i = 0; i < expected.stats.size(); ++i) {
      ASSERT_EQ(actual.stats[i].log_sum_exp, expected.stats[i].log_sum_exp);
      ASSERT_EQ(actual.stats[i].counted_rows, expected.stats[i].counted_rows);
    }
  });
}

TEST_P(MemoryPropertyTest, RowsAndMemoryOverIdenticalOldRowsIsTheExactAnswer) {
  ForRandomCases([&](Draw& draw) {
    const Shape shape = RandomShape(draw);
    const std::int64_t old_count = RowCount(draw), new_count = draw.Int(0, 40);
    const std::int64_t row_count = old_count + new_count;
    std::vector<float> keys = Vectors(draw, 1, shape), values = draw.Normal(shape.value_dim);
    keys = Take(keys, shape.key_dim, std::vector<std::int64_t>(old_count));
    values = Take(values, shape.value_dim, std::vector<std::int64_t>(old_count));
    const std::vector<float> new_keys = Vectors(draw, new_count, shape);
    const std::vector<float> new_values = draw.Normal(new_count * shape.value_dim);
    keys.insert(keys.end(), new_keys.begin(), new_keys.end());
    values.insert(values.end(), new_values.begin(), new_values.end());
    Create(shape);
    Append(draw, shape, keys, values);
    AttentionOptions options = RandomOptions(draw);
    options.mode = draw.Chance(0.7) ? Mode::kSoft : Mode::kLinear;
    RowFilter filter;
    if (draw.Chance(0.5)) {
      filter.begin = old_count;
    } else {
      filter.last = new_count;
    }
    const std::vector<float> queries = Vectors(draw, draw.Int(1, 4), shape);
    const LookupResult expected = Lookup(queries, shape, options);
    const LookupResult actual = Lookup(queries, shape, options, filter, Source::kRowsAndMemory);
    ExpectSameValues(actual, expected, Scale(expected, values));
    for (std::size_t i = 0; i < expected.stats.size(); ++i) {
      ASSERT_EQ(actual.stats.at(i).counted_rows, static_cast<std::uint64_t>(new_count + 1));
      if (options.mode == Mode::kSoft) {
        ASSERT_NEAR(actual.stats[i].log_sum_exp, expected.stats[i].log_sum_exp, 2e-5);
      }
      // The pair's weight is that of all old rows.
      double old_weight = 0, memory_weight = 0;
      for (const WeightedRow& row : expected.weights[i].rows) {
        if (row.position < static_cast<std::uint64_t>(old_count)) old_weight += row.weight;
      }
      for (const WeightedRow& row : actual.weights.at(i).rows) {
        if (row.position < static_cast<std::uint64_t>(old_count)) memory_weight += row.weight;
      }
      ASSERT_NEAR(memory_weight, old_weight, 2e-5 * std::max(1.0, std::abs(old_weight)));
    }
    ASSERT_EQ(engine_->GetStore("s")->row_count, static_cast<std::uint64_t>(row_count));
  });
}

INSTANTIATE_TEST_SUITE_P(EveryStorageTypeAndKernel, MemoryPropertyTest, EveryStorageTypeAndKernel(),
                         NameOf);

}  // namespace
}  // namespace softlookup::properties
