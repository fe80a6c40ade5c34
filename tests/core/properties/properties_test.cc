// What must hold of any lookup, memory and deletion, tried on random ones. A failure prints
// SOFTLOOKUP_TEST_SEED=N; with that in the environment the failing case comes first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/synchronization/notification.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/kernels.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::Draw;
using ::softlookup::testing::FirstSeed;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::KernelsHere;
using ::softlookup::testing::TestNameOf;

constexpr int kCases = 200;

// Mostly a few rows, now and then more than a block of them.
std::int64_t RowCount(Draw& draw) {
  return draw.Chance(0.05) ? draw.Int(1000, 2300) : draw.Int(1, 61);
}

struct Shape {
  std::int64_t num_heads = 1;
  std::int64_t key_dim = 1;  // Total.
  std::int64_t value_dim = 1;
};

Shape RandomShape(Draw& draw) {
  const std::int64_t num_heads = draw.Chance(0.5) ? 1 : draw.Int(2, 4);
  return {.num_heads = num_heads,
          .key_dim = num_heads * draw.Int(1, 24),
          .value_dim = num_heads * draw.Int(1, 12)};
}

// Components so small that scores stay around 1 in any dimension.
std::vector<float> Vectors(Draw& draw, std::int64_t count, const Shape& shape) {
  const double head_dim = static_cast<double>(shape.key_dim / shape.num_heads);
  return draw.Normal(count * shape.key_dim, std::pow(head_dim, -0.25));
}

// Any score and a temperature at which float32 resolves the logits.
AttentionOptions RandomOptions(Draw& draw) {
  return {.score = static_cast<Score>(draw.Int(0, 5)),
          .temperature = std::exp(draw.Real(std::log(0.2), std::log(20.0))),
          .weights = WeightsMode::kAll};
}

MatrixView View(const std::vector<float>& floats, std::int64_t cols) {
  return {
      .data = floats.data(), .rows = static_cast<std::int64_t>(floats.size()) / cols, .cols = cols};
}

// Some rows of a matrix, in the order of `rows`.
std::vector<float> Take(const std::vector<float>& floats, std::int64_t cols,
                        const std::vector<std::int64_t>& rows) {
  std::vector<float> taken;
  for (const std::int64_t row : rows) {
    taken.insert(taken.end(), floats.begin() + row * cols, floats.begin() + (row + 1) * cols);
  }
  return taken;
}

// The weights of all rows, 0 for those that are not listed.
std::vector<double> Dense(const QueryWeights& weights, std::int64_t row_count) {
  std::vector<double> dense(row_count);
  for (const WeightedRow& row : weights.rows) dense.at(row.position) = row.weight;
  return dense;
}

double LargestMagnitude(const std::vector<float>& floats) {
  double largest = 0;
  for (const float component : floats) {
    largest = std::max(largest, std::abs(static_cast<double>(component)));
  }
  return largest;
}

// The size that errors of an answer are relative to: its weights, without their signs, times the
// largest value component.
double Scale(const LookupResult& result, const std::vector<float>& values) {
  double largest = 1;
  for (const QueryWeights& weights : result.weights) {
    double sum = 0;
    for (const WeightedRow& row : weights.rows) sum += std::abs(row.weight);
    largest = std::max(largest, sum);
  }
  return largest * std::max(1.0, LargestMagnitude(values));
}

void ExpectSameStats(const LookupResult& actual, const LookupResult& expected,
                     double log_sum_exp_shift = 0) {
  ASSERT_EQ(actual.stats.size(), expected.stats.size());
  for (std::size_t i = 0; i < expected.stats.size(); ++i) {
    ASSERT_EQ(actual.stats[i].counted_rows, expected.stats[i].counted_rows);
    if (std::isinf(expected.stats[i].log_sum_exp)) {
      ASSERT_EQ(actual.stats[i].log_sum_exp, expected.stats[i].log_sum_exp);
    } else {
      ASSERT_NEAR(actual.stats[i].log_sum_exp, expected.stats[i].log_sum_exp + log_sum_exp_shift,
                  2e-5);
    }
    ASSERT_NEAR(actual.stats[i].entropy, expected.stats[i].entropy, 5e-5);
  }
}

void ExpectSameValues(const LookupResult& actual, const LookupResult& expected, double scale) {
  ASSERT_EQ(actual.values.size(), expected.values.size());
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    ASSERT_NEAR(actual.values[i], expected.values[i], 2e-5 * scale) << "component " << i;
  }
}

// The parameters are how the store keeps its rows, and what scans them.
class PropertyTest : public ::testing::TestWithParam<std::tuple<StorageType, Kernel>> {
 protected:
  PropertyTest()
      : engine_(Engine::Create({.thread_count = 2, .kernel = std::get<Kernel>(GetParam())})) {}

  static StorageType storage_type() { return std::get<StorageType>(GetParam()); }

  // Runs `body` on as many random cases as there must be, until one fails.
  template <typename Body>
  void ForRandomCases(const Body& body) {
    const std::uint64_t first = FirstSeed();
    for (int i = 0; i < kCases && !HasFailure(); ++i) {
      const std::uint64_t seed = first + i;
      SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(seed));
      Draw draw(seed);
      body(draw);
      engine_->DeleteStore("s").IgnoreError();
    }
  }

  void Create(const Shape& shape, const std::vector<MemorySpec>& memories = {}) {
    ASSERT_THAT(engine_->CreateStore({.name = "s",
                                      .key_dim = shape.key_dim,
                                      .value_dim = shape.value_dim,
                                      .num_heads = shape.num_heads,
                                      .storage_type = storage_type(),
                                      .memories = memories}),
                IsOk());
  }

  struct Tags {
    std::vector<std::uint64_t> ids;
    std::vector<std::vector<std::string>> labels;
  };
  // Appends all rows in batches of random sizes.
  void Append(Draw& draw, const Shape& shape, const std::vector<float>& keys,
              const std::vector<float>& values, const Tags& tags = {},
              OnConflict on_conflict = OnConflict::kUnspecified) {
    const std::int64_t row_count = static_cast<std::int64_t>(keys.size()) / shape.key_dim;
    for (std::int64_t begin = 0; begin < row_count;) {
      const std::int64_t count = draw.Int(1, row_count - begin);
      AppendRequest request{.store = "s",
                            .keys = {&keys[begin * shape.key_dim], count, shape.key_dim},
                            .values = {&values[begin * shape.value_dim], count, shape.value_dim},
                            .on_conflict = on_conflict};
      if (!tags.ids.empty()) {
        request.ids = absl::MakeConstSpan(tags.ids).subspan(begin, count);
      }
      if (!tags.labels.empty()) {
        request.row_labels = absl::MakeConstSpan(tags.labels).subspan(begin, count);
      }
      ASSERT_THAT(softlookup::testing::AppendAndWait(*engine_, request), IsOk());
      begin += count;
    }
  }

  // The rows become what the store keeps of them.
  void ReadBack(Draw& draw, std::vector<float>& keys, std::vector<float>& values) {
    std::vector<float> kept_keys, kept_values;
    const auto reader = engine_->ReadRows("s", {});
    ASSERT_THAT(reader, IsOk());
    for (const Row& row : ReadAll(**reader, draw)) {
      kept_keys.insert(kept_keys.end(), row.key.begin(), row.key.end());
      kept_values.insert(kept_values.end(), row.value.begin(), row.value.end());
    }
    if (storage_type() == StorageType::kFloat32) {
      ASSERT_EQ(kept_keys, keys);
      ASSERT_EQ(kept_values, values);
    }
    keys = std::move(kept_keys);
    values = std::move(kept_values);
  }

  LookupResult Lookup(const std::vector<float>& queries, const Shape& shape,
                      const AttentionOptions& options, const RowFilter& filter = {},
                      Source source = Source::kUnspecified) {
    const LookupRequest request{.store = "s",
                                .queries = View(queries, shape.key_dim),
                                .options = options,
                                .filter = filter,
                                .source = source};
    return Wait([&](auto callback) {
      engine_->Lookup(request, std::make_shared<CancelToken>(), std::move(callback));
    });
  }

  LookupResult Attend(const AttendRequest& request) {
    return Wait([&](auto callback) {
      engine_->Attend(request, std::make_shared<CancelToken>(), std::move(callback));
    });
  }

  MemoryState Memory(const std::string& name, std::optional<std::uint64_t> begin,
                     std::optional<std::uint64_t> end) {
    const auto memory = engine_->GetMemory("s", name, begin, end);
    EXPECT_THAT(memory, IsOk());
    return memory.ok() ? *memory : MemoryState();
  }

  std::vector<Row> ReadAll(RowReader& reader, Draw& draw) {
    std::vector<Row> all;
    while (true) {
      std::vector<Row> rows = reader.Next(draw.Int(1, 50));
      if (rows.empty()) return all;
      all.insert(all.end(), rows.begin(), rows.end());
    }
  }

  std::unique_ptr<Engine> engine_;

 private:
  template <typename Call>
  LookupResult Wait(const Call& call) {
    absl::StatusOr<LookupResult> result;
    absl::Notification done;
    call([&](absl::StatusOr<LookupResult> answer) {
      result = std::move(answer);
      done.Notify();
    });
    done.WaitForNotification();
    EXPECT_THAT(result, IsOk());
    return result.ok() ? *std::move(result) : LookupResult();
  }
};

// Rows with different ids in no order, and some of the labels a, b, c and d.
struct TaggedRows {
  std::vector<std::uint64_t> ids;
  std::vector<std::vector<std::string>> labels;
};

TaggedRows RandomTags(Draw& draw, std::int64_t row_count) {
  TaggedRows tags;
  for (const std::int64_t place : draw.Permutation(row_count)) tags.ids.push_back(7 * place + 3);
  for (std::int64_t row = 0; row < row_count; ++row) {
    std::vector<std::string>& labels = tags.labels.emplace_back();
    for (const char* label : {"a", "b", "c", "d"}) {
      if (draw.Chance(0.3)) labels.push_back(label);
    }
  }
  return tags;
}

RowFilter RandomFilter(Draw& draw, const TaggedRows& tags) {
  const std::int64_t row_count = static_cast<std::int64_t>(tags.ids.size());
  RowFilter filter;
  if (draw.Chance(0.3)) filter.begin = draw.Int(0, row_count / 2);
  if (draw.Chance(0.3)) filter.end = draw.Int(row_count / 2, row_count);
  if (draw.Chance(0.2)) filter.last = draw.Int(0, row_count);
  for (const char* label : {"a", "b", "never"}) {
    if (draw.Chance(0.15)) filter.any_labels.push_back(label);
  }
  for (const char* label : {"c", "d", "never"}) {
    if (draw.Chance(0.15)) filter.no_labels.push_back(label);
  }
  if (draw.Chance(0.2)) {
    for (const std::uint64_t id : tags.ids) {
      if (draw.Chance(0.7)) filter.ids.push_back(id);
    }
  }
  if (draw.Chance(0.2)) {
    for (const std::uint64_t id : tags.ids) {
      if (draw.Chance(0.3)) filter.exclude_ids.push_back(id);
    }
  }
  return filter;
}

// The definition of RowFilter, row by row.
std::vector<bool> RowsOf(const RowFilter& filter, const TaggedRows& tags) {
  const std::uint64_t row_count = tags.ids.size();
  const std::uint64_t end = filter.end.value_or(row_count);
  std::uint64_t begin = filter.begin.value_or(0);
  if (filter.last) begin = std::max(begin, end - std::min(end, *filter.last));
  const auto has = [](const auto& list, const auto& item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  };
  std::vector<bool> passes(row_count);
  for (std::uint64_t row = begin; row < end; ++row) {
    const auto has_one_of = [&](const std::vector<std::string>& labels) {
      return std::any_of(labels.begin(), labels.end(),
                         [&](const auto& label) { return has(tags.labels[row], label); });
    };
    passes[row] = (filter.any_labels.empty() || has_one_of(filter.any_labels)) &&
                  !has_one_of(filter.no_labels) &&
                  (filter.ids.empty() || has(filter.ids, tags.ids[row])) &&
                  !has(filter.exclude_ids, tags.ids[row]);
  }
  return passes;
}

TEST_P(PropertyTest, AFilterCountsTheRowsThatItsDefinitionCounts) {
  ForRandomCases([&](Draw& draw) {
    const Shape shape = RandomShape(draw);
    const std::int64_t row_count = RowCount(draw);
    const TaggedRows tags = RandomTags(draw, row_count);
    Create(shape);
    Append(draw, shape, Vectors(draw, row_count, shape), draw.Normal(row_count * shape.value_dim),
           {tags.ids, tags.labels});
    const RowFilter filter = RandomFilter(draw, tags);
    const std::vector<bool> expected = RowsOf(filter, tags);
    const LookupResult result = Lookup(Vectors(draw, 1, shape), shape, RandomOptions(draw), filter);
    for (const QueryWeights& weights : result.weights) {
      std::vector<bool> counted(row_count);
      for (const WeightedRow& row : weights.rows) {
        counted.at(row.position) = true;
        ASSERT_EQ(row.id, tags.ids[row.position]);
      }
      ASSERT_EQ(counted, expected);
    }
  });
}

TEST_P(PropertyTest, AddingOneScoreToAllRowsLeavesTheirWeightsUnchanged) {
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

TEST_P(PropertyTest, DisjointLookupsMergeByLogSumExpToOneOverTheirUnion) {
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

TEST_P(PropertyTest, TheAverageOfAWindowIsTheDifferenceOfPrefixes) {
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

TEST_P(PropertyTest, ADecayedMemoryTendsToTheSumAsItsDecayTendsToOne) {
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

TEST_P(PropertyTest, PermutingTheRowsPermutesTheirWeights) {
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

TEST_P(PropertyTest, SelfAttentionOfOneRowIsItsValue) {
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

TEST_P(PropertyTest, DeletingRowsEqualsExcludingThem) {
  ForRandomCases([&](Draw& draw) {
    const Shape shape = RandomShape(draw);
    // Now and then few rows of a whole block stay.
    const bool most_go = draw.Chance(0.3);
    const std::int64_t row_count = most_go ? draw.Int(1024, 2300) : RowCount(draw);
    const TaggedRows tags = RandomTags(draw, row_count);
    const std::vector<float> values = draw.Normal(row_count * shape.value_dim);
    Create(shape);
    Append(draw, shape, Vectors(draw, row_count, shape), values, {tags.ids, tags.labels});
    const std::vector<float> queries = Vectors(draw, draw.Int(1, 4), shape);
    AttentionOptions options = RandomOptions(draw);
    options.mode = static_cast<Mode>(draw.Int(1, 3));
    options.top_k = draw.Chance(0.3) ? static_cast<std::uint32_t>(draw.Int(1, 8)) : 0;
    if (draw.Chance(0.3)) options.min_score = draw.Real(-1.5, 0.5);
    if (draw.Chance(0.3)) options.recency_decay = draw.Real(0.9, 1);
    if (draw.Chance(0.3)) {
      options.causal = true;
      options.causal_offset = draw.Int(0, row_count);
    }
    RowFilter gone = RandomFilter(draw, tags);
    if (most_go) {
      for (const std::int64_t row : draw.Permutation(row_count)) {
        gone.exclude_ids.push_back(tags.ids[row]);
      }
      gone.exclude_ids.resize(draw.Int(0, 400));
      if (gone.exclude_ids.empty()) gone.begin = 0;
    }
    if (gone.empty()) gone.ids = {tags.ids[draw.Int(0, row_count - 1)]};
    const std::vector<bool> is_gone = RowsOf(gone, tags);
    RowFilter filter = RandomFilter(draw, tags), rest = filter;
    std::uint64_t gone_count = 0;
    for (std::int64_t row = 0; row < row_count; ++row) {
      if (!is_gone[row]) continue;
      rest.exclude_ids.push_back(tags.ids[row]);
      ++gone_count;
    }
    const LookupResult expected = Lookup(queries, shape, options, rest);
    const MemoryState memory = Memory("average", {}, {});
    const auto deleted = engine_->DeleteRows("s", gone);
    ASSERT_THAT(deleted, IsOk());
    ASSERT_EQ(deleted->deleted_count, gone_count);
    ASSERT_EQ(engine_->GetStore("s")->live_row_count, row_count - gone_count);
    ASSERT_EQ(engine_->GetStore("s")->row_count, static_cast<std::uint64_t>(row_count));
    const LookupResult actual = Lookup(queries, shape, options, filter);
    ExpectSameValues(actual, expected, Scale(expected, values));
    ExpectSameStats(actual, expected);
    for (std::size_t i = 0; i < expected.weights.size(); ++i) {
      std::vector<std::uint64_t> a, e;
      for (const WeightedRow& row : actual.weights.at(i).rows) a.push_back(row.position);
      for (const WeightedRow& row : expected.weights[i].rows) e.push_back(row.position);
      ASSERT_EQ(a, e);
    }
    ASSERT_EQ(Memory("average", {}, {}).memory.value, memory.memory.value);
    ASSERT_EQ(engine_->DeleteRows("s", gone)->deleted_count, 0u);
  });
}

TEST_P(PropertyTest, ASnapshotFromBeforeADeleteOrReplaceStillShowsTheRows) {
  ForRandomCases([&](Draw& draw) {
    const Shape shape = RandomShape(draw);
    const std::int64_t row_count = RowCount(draw);
    const TaggedRows tags = RandomTags(draw, row_count);
    std::vector<float> keys = Vectors(draw, row_count, shape);
    std::vector<float> values = draw.Normal(row_count * shape.value_dim);
    Create(shape);
    Append(draw, shape, keys, values, {tags.ids, tags.labels});
    ReadBack(draw, keys, values);
    // Some rows may be gone from it already.
    std::vector<std::int64_t> shown;
    RowFilter earlier;
    const double earlier_share = draw.Chance(0.5) ? 0.3 : 0;
    for (std::int64_t row = 0; row < row_count; ++row) {
      if (draw.Chance(earlier_share)) {
        earlier.ids.push_back(tags.ids[row]);
      } else {
        shown.push_back(row);
      }
    }
    if (!earlier.ids.empty()) {
      ASSERT_THAT(engine_->DeleteRows("s", earlier), IsOk());
    }
    auto before = engine_->ReadRows("s", {});
    ASSERT_THAT(before, IsOk());
    // Part of it may have been read already.
    std::vector<Row> rows = (*before)->Next(draw.Int(1, row_count));

    std::set<std::uint64_t> gone(earlier.ids.begin(), earlier.ids.end());
    std::int64_t added = 0;
    const bool deletes = draw.Chance(0.6), replaces = !deletes || draw.Chance(0.5);
    if (deletes) {
      RowFilter filter;
      for (const std::uint64_t id : tags.ids) {
        if (draw.Chance(0.5)) filter.ids.push_back(id);
      }
      if (filter.ids.empty()) filter.ids.push_back(tags.ids[0]);
      ASSERT_THAT(engine_->DeleteRows("s", filter), IsOk());
      gone.insert(filter.ids.begin(), filter.ids.end());
    }
    if (replaces) {
      Tags again;
      for (const std::uint64_t id : tags.ids) {
        if (draw.Chance(0.3)) again.ids.push_back(id);
      }
      if (again.ids.empty()) again.ids.push_back(tags.ids[0]);
      added = static_cast<std::int64_t>(again.ids.size());
      Append(draw, shape, Vectors(draw, added, shape), draw.Normal(added * shape.value_dim), again,
             OnConflict::kReplace);
      gone.insert(again.ids.begin(), again.ids.end());
    }

    const std::vector<Row> more = ReadAll(**before, draw);
    rows.insert(rows.end(), more.begin(), more.end());
    ASSERT_EQ(rows.size(), shown.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i].position, static_cast<std::uint64_t>(shown[i]));
      ASSERT_EQ(rows[i].id, tags.ids[shown[i]]);
      ASSERT_EQ(rows[i].labels, tags.labels[shown[i]]);
      ASSERT_EQ(rows[i].key, Take(keys, shape.key_dim, {shown[i]}));
      ASSERT_EQ(rows[i].value, Take(values, shape.value_dim, {shown[i]}));
    }
    auto after = engine_->ReadRows("s", {});
    ASSERT_THAT(after, IsOk());
    ASSERT_GE((*after)->revision(), (*before)->revision());
    ASSERT_EQ((*after)->revision() > (*before)->revision(),
              added > 0 || gone.size() > earlier.ids.size());
    const std::vector<Row> left = ReadAll(**after, draw);
    ASSERT_EQ(static_cast<std::int64_t>(left.size()),
              row_count - static_cast<std::int64_t>(gone.size()) + added);
    for (const Row& row : left) {
      if (row.position >= static_cast<std::uint64_t>(row_count)) continue;
      ASSERT_FALSE(gone.contains(*row.id)) << "position " << row.position;
      ASSERT_EQ(row.key, Take(keys, shape.key_dim, {static_cast<std::int64_t>(row.position)}));
    }
  });
}

TEST_P(PropertyTest, RowsAndMemoryWithNoOlderRowsIsRows) {
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

TEST_P(PropertyTest, RowsAndMemoryOverIdenticalOldRowsIsTheExactAnswer) {
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

INSTANTIATE_TEST_SUITE_P(EveryStorageTypeAndKernel, PropertyTest,
                         ::testing::Combine(::testing::Values(StorageType::kFloat32,
                                                              StorageType::kBfloat16,
                                                              StorageType::kInt8),
                                            ::testing::ValuesIn(KernelsHere())),
                         [](const auto& info) {
                           const StorageType type = std::get<StorageType>(info.param);
                           return (type == StorageType::kFloat32    ? "Float32"
                                   : type == StorageType::kBfloat16 ? "Bfloat16"
                                                                    : "Int8") +
                                  TestNameOf(std::get<Kernel>(info.param));
                         });

}  // namespace
}  // namespace softlookup
