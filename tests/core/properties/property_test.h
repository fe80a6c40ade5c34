// What must hold of any lookup, memory and deletion, tried on random ones. A failure prints
// SOFTLOOKUP_TEST_SEED=N; with that in the environment the failing case comes first.
#ifndef SOFTLOOKUP_TESTS_CORE_PROPERTIES_PROPERTY_TEST_H_
#define SOFTLOOKUP_TESTS_CORE_PROPERTIES_PROPERTY_TEST_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/kernels.h"
#include "tests/testing/random.h"
#include "tests/testing/sanitized.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::properties {

using ::softlookup::testing::Draw;
using ::softlookup::testing::FirstSeed;
using ::softlookup::testing::IsOk;

inline constexpr int kCases = softlookup::testing::kSanitized ? 50 : 200;

// Mostly a few rows, now and then more than a block of them.
inline std::int64_t RowCount(Draw& draw) {
  return draw.Chance(0.05) ? draw.Int(1000, 2300) : draw.Int(1, 61);
}

struct Shape {
  std::int64_t num_heads = 1;
  std::int64_t key_dim = 1;  // Total.
  std::int64_t value_dim = 1;
};

inline Shape RandomShape(Draw& draw) {
  const std::int64_t num_heads = draw.Chance(0.5) ? 1 : draw.Int(2, 4);
  return {.num_heads = num_heads,
          .key_dim = num_heads * draw.Int(1, 24),
          .value_dim = num_heads * draw.Int(1, 12)};
}

// Components so small that scores stay around 1 in any dimension.
inline std::vector<float> Vectors(Draw& draw, std::int64_t count, const Shape& shape) {
  const double head_dim = static_cast<double>(shape.key_dim / shape.num_heads);
  return draw.Normal(count * shape.key_dim, std::pow(head_dim, -0.25));
}

// Any score and a temperature at which float32 resolves the logits.
inline AttentionOptions RandomOptions(Draw& draw) {
  return {.score = static_cast<Score>(draw.Int(0, static_cast<int>(kScoreMax))),
          .temperature = std::exp(draw.Real(std::log(0.2), std::log(20.0))),
          .weights = WeightsMode::kAll};
}

inline MatrixView View(const std::vector<float>& floats, std::int64_t cols) {
  return {
      .data = floats.data(), .rows = static_cast<std::int64_t>(floats.size()) / cols, .cols = cols};
}

// Some rows of a matrix, in the order of `rows`.
inline std::vector<float> Take(const std::vector<float>& floats, std::int64_t cols,
                               const std::vector<std::int64_t>& rows) {
  std::vector<float> taken;
  for (const std::int64_t row : rows) {
    taken.insert(taken.end(), floats.begin() + row * cols, floats.begin() + (row + 1) * cols);
  }
  return taken;
}

// The weights of all rows, 0 for those that are not listed.
inline std::vector<double> Dense(const QueryWeights& weights, std::int64_t row_count) {
  std::vector<double> dense(row_count);
  for (const WeightedRow& row : weights.rows) dense.at(row.position) = row.weight;
  return dense;
}

inline double LargestMagnitude(const std::vector<float>& floats) {
  double largest = 0;
  for (const float component : floats) {
    largest = std::max(largest, std::abs(static_cast<double>(component)));
  }
  return largest;
}

// The size that errors of an answer are relative to: its weights, without their signs, times the
// largest value component.
inline double Scale(const LookupResult& result, const std::vector<float>& values) {
  double largest = 1;
  for (const QueryWeights& weights : result.weights) {
    double sum = 0;
    for (const WeightedRow& row : weights.rows) sum += std::abs(row.weight);
    largest = std::max(largest, sum);
  }
  return largest * std::max(1.0, LargestMagnitude(values));
}

inline void ExpectSameStats(const LookupResult& actual, const LookupResult& expected,
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

inline void ExpectSameValues(const LookupResult& actual, const LookupResult& expected,
                             double scale) {
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

inline TaggedRows RandomTags(Draw& draw, std::int64_t row_count) {
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

inline RowFilter RandomFilter(Draw& draw, const TaggedRows& tags) {
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
inline std::vector<bool> RowsOf(const RowFilter& filter, const TaggedRows& tags) {
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

// Every way to keep rows, with everything here that scans them.
inline auto EveryStorageTypeAndKernel() {
  return ::testing::Combine(
      ::testing::Values(StorageType::kFloat32, StorageType::kBfloat16, StorageType::kInt8),
      ::testing::ValuesIn(testing::KernelsHere()));
}

inline std::string NameOf(const ::testing::TestParamInfo<std::tuple<StorageType, Kernel>>& info) {
  const StorageType type = std::get<StorageType>(info.param);
  return (type == StorageType::kFloat32    ? "Float32"
          : type == StorageType::kBfloat16 ? "Bfloat16"
                                           : "Int8") +
         testing::TestNameOf(std::get<Kernel>(info.param));
}

}  // namespace softlookup::properties

#endif  // SOFTLOOKUP_TESTS_CORE_PROPERTIES_PROPERTY_TEST_H_
