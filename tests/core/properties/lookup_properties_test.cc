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

using LookupPropertyTest = PropertyTest;

TEST_P(LookupPropertyTest, AddingOneScoreToAllRowsLeavesTheirWeightsUnchanged) {
  ForRandomCases([&](Draw& draw) {
    Shape shape = RandomShape(draw);
    const std::int64_t row_count = RowCount(draw), query_count = draw.Int(1, 5);
    const float shift = static_cast<float>(draw.Real(-8, 8));
    AttentionOptions options = RandomOptions(draw);
    options.score = Score::kDot;
    if (draw.Chance(0.3)) options.recency_decay = draw.Real(0.9, 1);
    if (draw.Chance(0.3)) {
      options.causal = true;
      options.causal_offset = draw.Int(0, row_count);
    }
    const std::vector<float> values = draw.Normal(row_count * shape.value_dim);
    // Every head's vectors get one component more: 1 in the keys, nothing or `shift` in the
    // queries.
    const std::int64_t head_dim = shape.key_dim / shape.num_heads;
    const auto extend = [&](const std::vector<float>& vectors, float component) {
      std::vector<float> extended;
      for (std::size_t i = 0; i < vectors.size(); i += head_dim) {
        extended.insert(extended.end(), vectors.begin() + i, vectors.begin() + i + head_dim);
        extended.push_back(component);
      }
      return extended;
    };
    const std::vector<float> keys = extend(Vectors(draw, row_count, shape), 1);
    const std::vector<float> queries = Vectors(draw, query_count, shape);
    const std::vector<float> plain = extend(queries, 0), shifted = extend(queries, shift);
    shape.key_dim += shape.num_heads;
    AttendRequest request{.queries = View(plain, shape.key_dim),
                          .keys = View(keys, shape.key_dim),
                          .values = View(values, shape.value_dim),
                          .num_heads = shape.num_heads,
                          .options = options};
    const LookupResult expected = Attend(request);
    request.queries = View(shifted, shape.key_dim);
    const LookupResult actual = Attend(request);
    ExpectSameValues(actual, expected, Scale(expected, values));
    ExpectSameStats(actual, expected, shift / *options.temperature);
    ASSERT_EQ(actual.weights.size(), static_cast<std::size_t>(query_count * shape.num_heads));
    for (std::size_t i = 0; i < actual.weights.size(); ++i) {
      const std::vector<double> a = Dense(actual.weights[i], row_count);
      const std::vector<double> e = Dense(expected.weights[i], row_count);
      for (std::int64_t j = 0; j < row_count; ++j) ASSERT_NEAR(a[j], e[j], 2e-5) << "row " << j;
    }
  });
}

TEST_P(LookupPropertyTest, DisjointLookupsMergeByLogSumExpToOneOverTheirUnion) {
  ForRandomCases([&](Draw& draw) {
    const Shape shape = RandomShape(draw);
    const std::int64_t row_count = RowCount(draw), query_count = draw.Int(1, 4);
    const TaggedRows tags = RandomTags(draw, row_count);
    const std::vector<float> values = draw.Normal(row_count * shape.value_dim);
    Create(shape);
    Append(draw, shape, Vectors(draw, row_count, shape), values, {tags.ids, tags.labels});
    AttentionOptions options = RandomOptions(draw);
    if (draw.Chance(0.3)) options.recency_decay = draw.Real(0.9, 1);
    if (draw.Chance(0.3)) {
      options.causal = true;
      options.causal_offset = draw.Int(0, row_count);
    }
    // Those of the union with a label or with one of some ids, and the rest.
    RowFilter whole = RandomFilter(draw, tags);
    whole.ids.clear();
    whole.exclude_ids.clear();
    whole.any_labels.clear();
    RowFilter left = whole, right = whole;
    if (draw.Chance(0.5)) {
      left.any_labels = {"a", "b"};
      right.no_labels.push_back("a");
      right.no_labels.push_back("b");
    } else {
      for (const std::uint64_t id : tags.ids) {
        if (draw.Chance(0.5)) left.ids.push_back(id);
      }
      if (left.ids.empty()) left.ids.push_back(tags.ids[0]);
      right.exclude_ids = left.ids;
    }
    const std::vector<float> queries = Vectors(draw, query_count, shape);
    const LookupResult expected = Lookup(queries, shape, options, whole);
    const LookupResult a = Lookup(queries, shape, options, left);
    const LookupResult b = Lookup(queries, shape, options, right);
    const double scale = Scale(expected, values);
    const std::int64_t head_dim = shape.value_dim / shape.num_heads;
    for (std::size_t lane = 0; lane < expected.stats.size(); ++lane) {
      const double la = a.stats[lane].log_sum_exp, lb = b.stats[lane].log_sum_exp;
      ASSERT_EQ(a.stats[lane].counted_rows + b.stats[lane].counted_rows,
                expected.stats[lane].counted_rows);
      if (expected.stats[lane].counted_rows == 0) {
        ASSERT_EQ(expected.stats[lane].log_sum_exp, -std::numeric_limits<double>::infinity());
        continue;
      }
      const double larger = std::max(la, lb);
      const double lse = larger + std::log(std::exp(la - larger) + std::exp(lb - larger));
      ASSERT_NEAR(lse, expected.stats[lane].log_sum_exp, 2e-5);
      for (std::int64_t i = 0; i < head_dim; ++i) {
        const std::size_t c = lane * head_dim + i;
        ASSERT_NEAR(std::exp(la - lse) * a.values[c] + std::exp(lb - lse) * b.values[c],
                    expected.values[c], 2e-5 * scale);
      }
    }
  });
}

TEST_P(LookupPropertyTest, PermutingTheRowsPermutesTheirWeights) {
  ForRandomCases([&](Draw& draw) {
    const Shape shape = RandomShape(draw);
    const std::int64_t row_count = RowCount(draw), query_count = draw.Int(1, 4);
    const std::vector<float> keys = Vectors(draw, row_count, shape);
    const std::vector<float> values = draw.Normal(row_count * shape.value_dim);
    const std::vector<float> queries = Vectors(draw, query_count, shape);
    AttentionOptions options = RandomOptions(draw);
    // Not HARD: of two heads of dimension 1 the scores may tie.
    options.mode = draw.Chance(0.5) ? Mode::kSoft : Mode::kLinear;
    const std::vector<std::int64_t> order = draw.Permutation(row_count);
    const std::vector<float> permuted_keys = Take(keys, shape.key_dim, order);
    const std::vector<float> permuted_values = Take(values, shape.value_dim, order);
    AttendRequest request{.queries = View(queries, shape.key_dim),
                          .keys = View(keys, shape.key_dim),
                          .values = View(values, shape.value_dim),
                          .num_heads = shape.num_heads,
                          .options = options};
    const LookupResult expected = Attend(request);
    request.keys = View(permuted_keys, shape.key_dim);
    request.values = View(permuted_values, shape.value_dim);
    const LookupResult actual = Attend(request);
    ExpectSameValues(actual, expected, Scale(expected, values));
    ExpectSameStats(actual, expected);
    ASSERT_EQ(actual.weights.size(), expected.weights.size());
    for (std::size_t i = 0; i < actual.weights.size(); ++i) {
      const std::vector<double> a = Dense(actual.weights[i], row_count);
      const std::vector<double> e = Dense(expected.weights[i], row_count);
      for (std::int64_t j = 0; j < row_count; ++j) {
        ASSERT_NEAR(a[j], e[order[j]], 2e-5 * std::max(1.0, std::abs(e[order[j]])));
      }
    }
  });
}

TEST_P(LookupPropertyTest, SelfAttentionOfOneRowIsItsValue) {
  ForRandomCases([&](Draw& draw) {
    const Shape shape = RandomShape(draw);
    AttentionOptions options = RandomOptions(draw);
    options.mode = draw.Chance(0.5) ? Mode::kSoft : Mode::kHard;
    options.causal = draw.Chance(0.5);
    options.top_k = static_cast<std::uint32_t>(draw.Int(0, 2));
    AttendRequest request{.self = true, .num_heads = shape.num_heads, .options = options};
    std::vector<float> inputs;
    std::vector<double> expected;
    if (draw.Chance(0.5)) {
      inputs = draw.Normal(shape.key_dim);
      expected.assign(inputs.begin(), inputs.end());
    } else {
      const std::int64_t input_dim = draw.Int(1, 20);
      inputs = draw.Normal(input_dim);
      auto projection = std::make_shared<Projection>();
      projection->input_dim = input_dim;
      projection->query = draw.Normal(shape.key_dim * input_dim);
      projection->key = draw.Normal(shape.key_dim * input_dim);
      projection->value = draw.Normal(shape.value_dim * input_dim);
      for (std::int64_t i = 0; i < shape.value_dim; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < input_dim; ++j) {
          sum += static_cast<double>(projection->value[i * input_dim + j]) * inputs[j];
        }
        expected.push_back(sum);
      }
      request.projection = projection;
    }
    request.inputs = View(inputs, static_cast<std::int64_t>(inputs.size()));
    const LookupResult result = Attend(request);
    ASSERT_EQ(result.values.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(result.values[i], expected[i], 1e-6 * std::max(1.0, std::abs(expected[i])));
    }
    ASSERT_EQ(result.stats.size(), static_cast<std::size_t>(shape.num_heads));
    for (const QueryStats& stats : result.stats) {
      ASSERT_EQ(stats.counted_rows, 1u);
      ASSERT_EQ(stats.entropy, 0);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(EveryStorageTypeAndKernel, LookupPropertyTest, EveryStorageTypeAndKernel(),
                         NameOf);

}  // namespace
}  // namespace softlookup::properties
