#include "core/attention/attend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/golden.h"
#include "tests/testing/random.h"
#include "tests/testing/sanitized.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::RelativeError;
using ::softlookup::testing::StatusIs;

// Options in every combination that changes the path through the code.
std::vector<ResolvedOptions> ManyOptions() {
  std::vector<ResolvedOptions> all;
  for (const Score score : {Score::kDot, Score::kScaledDot, Score::kCosine, Score::kEuclidean,
                            Score::kSquaredEuclidean}) {
    for (const Mode mode : {Mode::kSoft, Mode::kHard, Mode::kLinear}) {
      for (const std::uint64_t top_k : {0, 7}) {
        all.push_back({.score = score,
                       .temperature = 0.5,
                       .mode = mode,
                       .top_k = top_k,
                       .ln_decay = top_k == 0 ? 0 : -0.001,
                       .causal = top_k != 0,
                       .causal_offset = 2000,
                       .weights = WeightsMode::kTop,
                       .top_weights = 5});
      }
    }
  }
  return all;
}

TEST(AttendTest, MatchesTheReferenceOverManyBlocks) {
  constexpr std::int64_t kRows = testing::kSanitized ? 1200 : 2500;
  constexpr std::int64_t kKeyDim = 48, kValueDim = 20;
  const std::vector<float> queries = NormalFloats(13 * kKeyDim, 2);
  for (const StorageType storage :
       {StorageType::kFloat32, StorageType::kBfloat16, StorageType::kInt8}) {
    const TestRows rows(kRows, kKeyDim, kValueDim, 1, 1, storage);
    for (const ResolvedOptions& options : ManyOptions()) {
      for (const std::int64_t num_heads : {1, 4}) {
        AttentionTask task = rows.Task(queries, options, num_heads);
        const ReferenceAnswer expected = rows.Reference(task);
        for (const auto unit : UnitsThatDiffer(options)) {
          task.tiles = unit;
          const AttentionAnswer answer = MustAttend(task);
          ASSERT_LE(RelativeError(answer.values, expected.values), 1e-5)
              << "score " << static_cast<int>(options.score) << " mode "
              << static_cast<int>(options.mode) << " top_k " << options.top_k;
          for (std::size_t i = 0; i < expected.stats.size(); ++i) {
            ASSERT_EQ(answer.stats[i].counted_rows, expected.stats[i].counted_rows);
            ASSERT_NEAR(answer.stats[i].entropy, expected.stats[i].entropy, 1e-5);
          }
        }
      }
    }
  }
}

TEST(AttendTest, ListsTheLargestWeightsThenTheLowestPositions) {
  constexpr std::int64_t kRows = 700, kKeyDim = 20;
  const TestRows rows(kRows, kKeyDim, 3, 5);
  const std::vector<float> queries = NormalFloats(3 * kKeyDim, 6);
  for (const Mode mode : {Mode::kSoft, Mode::kHard, Mode::kLinear}) {
    for (const double temperature : {1.0, 1e-4}) {  // At 1e-4 nearly all weights are 0.
      const ResolvedOptions options{.temperature = temperature,
                                    .mode = mode,
                                    .weights = WeightsMode::kTop,
                                    .top_weights = 20};
      const AttentionTask task = rows.Task(queries, options);
      const AttentionAnswer answer = MustAttend(task);
      const ReferenceAnswer expected = rows.Reference(task);
      for (std::size_t i = 0; i < 3; ++i) {
        std::vector<std::uint64_t> order(kRows);
        for (std::int64_t j = 0; j < kRows; ++j) order[j] = j;
        std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
          return expected.weights[i][a] > expected.weights[i][b];
        });
        double listed = 0, all = 0;
        for (const double weight : expected.weights[i]) all += weight;
        for (int j = 0; j < 20; ++j) {
          const WeightedRow& row = answer.weights[i].rows.at(j);
          ASSERT_EQ(row.position, order[j]) << "mode " << static_cast<int>(mode) << " rank " << j;
          ASSERT_NEAR(row.weight, expected.weights[i][order[j]],
                      1e-5 * std::max(1.0, std::abs(expected.weights[i][order[j]])));
          ASSERT_NEAR(row.score, expected.scores[i][order[j]], 1e-5);
          listed += row.weight;
        }
        ASSERT_NEAR(answer.weights[i].remaining_weight, all - listed,
                    1e-5 * std::max(1.0, std::abs(all)));
      }
    }
  }
}

// Many different logits have the same weight, and only weights and positions decide.
TEST(AttendTest, TopListsWhatAllListsFirstWhereLogitsDifferTooLittleToShow) {
  for (const int tied : {190, 5000}) {
    std::vector<float> keys(10, -20.0f);
    for (int j = 0; j < tied; ++j) keys.push_back(1e-20f * static_cast<float>(j));
    const TestRows rows(static_cast<std::int64_t>(keys.size()), 1, 1, keys, keys);
    const std::vector<float> queries = {1, 0, -1e-20f};
    ResolvedOptions options{.score = Score::kDot, .weights = WeightsMode::kAll, .top_weights = 5};
    const AttentionAnswer all = MustAttend(rows.Task(queries, options));
    options.weights = WeightsMode::kTop;
    const AttentionAnswer top = MustAttend(rows.Task(queries, options));
    for (std::size_t t = 0; t < queries.size(); ++t) {
      ASSERT_EQ(top.weights[t].rows.size(), 5u);
      for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(top.weights[t].rows[i].position, all.weights[t].rows[i].position);
        EXPECT_EQ(top.weights[t].rows[i].weight, all.weights[t].rows[i].weight);
        EXPECT_EQ(top.weights[t].rows[i].position, t == 0 ? 10 + i : i) << "query " << t;
      }
    }
  }
}

bool SameBits(const float* a, const float* b, std::int64_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

TEST(AttendTest, AQuerysBitsAreTheSameAloneInABatchAndOnAnyNumberOfThreads) {
  constexpr std::int64_t kRows = testing::kSanitized ? 2500 : 5000;
  constexpr std::int64_t kKeyDim = 40, kValueDim = 36, kQueries = 256;
  const TestRows rows_of_types[] = {
      TestRows(kRows, kKeyDim, kValueDim, 8),
      TestRows(kRows, kKeyDim, kValueDim, 8, 1, StorageType::kBfloat16),
      TestRows(kRows, kKeyDim, kValueDim, 8, 1, StorageType::kInt8),
  };
  const std::vector<float> queries = NormalFloats(kQueries * kKeyDim, 9);
  ForkJoinPool one_thread(1, 16);
  std::size_t number = 0;
  for (const ResolvedOptions& base : ManyOptions()) {
    // So that each score in each mode has its turn with another type.
    const TestRows& rows = rows_of_types[(number + number / 6) % 3];
    ++number;
    ResolvedOptions options = base;
    options.causal = false;  // Query t of a batch is query 0 when alone.
    for (const auto unit : UnitsThatDiffer(options)) {
      const auto task_of = [&](const std::vector<float>& of) {
        AttentionTask task = rows.Task(of, options, 2);
        task.tiles = unit;
        return task;
      };
      const AttentionAnswer batch = MustAttend(task_of(queries));
      const AttentionAnswer batch_on_one = MustAttend(task_of(queries), one_thread);
      ASSERT_TRUE(SameBits(batch.values.data(), batch_on_one.values.data(), kQueries * kValueDim));
      for (const std::int64_t t : {0, 1, 100, 255}) {
        const std::vector<float> query(queries.begin() + t * kKeyDim,
                                       queries.begin() + (t + 1) * kKeyDim);
        const AttentionAnswer alone = MustAttend(task_of(query));
        ASSERT_TRUE(SameBits(alone.values.data(), &batch.values[t * kValueDim], kValueDim));
        for (int head = 0; head < 2; ++head) {
          ASSERT_EQ(alone.stats[head].log_sum_exp, batch.stats[t * 2 + head].log_sum_exp);
          ASSERT_EQ(alone.stats[head].entropy, batch.stats[t * 2 + head].entropy);
        }
      }
    }
  }
}

// 20 blocks, which are three groups: scanned a group at a time where there are many queries, else
// block by block.
TEST(AttendTest, BitsDoNotDependOnHowTheWorkIsCut) {
  constexpr std::int64_t kRows = 2500, kKeyDim = 24, kValueDim = 1000, kQueries = 512;
  const TestRows rows(kRows, kKeyDim, kValueDim, 21);
  const std::vector<float> queries = NormalFloats(kQueries * kKeyDim, 22);
  ForkJoinPool one_thread(1, 16);
  const std::pair<std::uint64_t, std::optional<kernels::TileUnit>> cases[] = {
      {0, std::nullopt},
      {1, std::nullopt},
      {1030, std::nullopt},
      {2100, std::nullopt},
      {1030, kernels::TileUnit::kPortable},
  };
  for (const auto& [begin, tiles] : cases) {
    const auto task_of = [&, begin = begin, tiles = tiles](const std::vector<float>& of) {
      AttentionTask task = rows.Task(of, {.score = Score::kScaledDot});
      task.begin = begin;
      task.tiles = tiles;
      return task;
    };
    const AttentionAnswer batch = MustAttend(task_of(queries));
    const AttentionAnswer batch_on_one = MustAttend(task_of(queries), one_thread);
    ASSERT_TRUE(SameBits(batch.values.data(), batch_on_one.values.data(), kQueries * kValueDim));
    for (const std::int64_t t : {0, 77, 511}) {
      const std::vector<float> query(queries.begin() + t * kKeyDim,
                                     queries.begin() + (t + 1) * kKeyDim);
      const AttentionAnswer alone = MustAttend(task_of(query));
      ASSERT_TRUE(SameBits(alone.values.data(), &batch.values[t * kValueDim], kValueDim));
      ASSERT_EQ(alone.stats[0].log_sum_exp, batch.stats[t].log_sum_exp);
    }
  }
}

// Rule 1: 1e-5 of the largest component while logits stay under 128.
TEST(AttendTest, StaysWithinItsBoundAtLogitsOfAHundred) {
  constexpr std::int64_t kRows = testing::kSanitized ? 4000 : 20000, kDim = 128, kQueries = 64;
  const TestRows rows(kRows, kDim, kDim, 21);
  const std::vector<float> queries = NormalFloats(kQueries * kDim, 22);
  for (const double temperature : {1.0, 0.035}) {
    const AttentionTask task = rows.Task(queries, {.temperature = temperature});
    const ReferenceAnswer expected = rows.Reference(task);
    EXPECT_LE(RelativeError(MustAttend(task).values, expected.values), 1e-5)
        << "temperature " << temperature;
  }
}

TEST(AttendTest, EqualRowsAverageExactlyOverManyBlocks) {
  constexpr std::int64_t kRows = 100'000;
  const TestRows rows(kRows, 1, 1, std::vector<float>(kRows, 0.3f),
                      std::vector<float>(kRows, 0.1f));
  const std::vector<float> query = {0.7f};
  const AttentionAnswer answer = MustAttend(rows.Task(query, {}));
  EXPECT_NEAR(answer.values[0] / 0.1f, 1, 5e-6);
  EXPECT_NEAR(answer.stats[0].entropy, std::log(kRows), 1e-5);
}

TEST(AttendTest, HugeAndTinyComponentsNeitherOverflowNorVanish) {
  for (const double size : {3e37, 1e25, 1e-30}) {
    const TestRows rows(40, 20, 5, 31, size);
    const std::vector<float> queries = NormalFloats(2 * 20, 32, size);
    for (const Score score : {Score::kDot, Score::kCosine, Score::kEuclidean}) {
      for (const Mode mode : {Mode::kSoft, Mode::kHard}) {
        const AttentionTask task = rows.Task(queries, {.score = score, .mode = mode});
        const AttentionAnswer answer = MustAttend(task);
        for (const float value : answer.values) ASSERT_TRUE(std::isfinite(value));
        ASSERT_LE(
            RelativeError(answer.values, rows.Reference(task).values) * std::max(1.0, 1e-30 / size),
            1e-5)
            << size << " score " << static_cast<int>(score);
      }
    }
  }
}

// One weight of 2^-60 and a thousand that are small beside it, and not altogether.
TEST(AttendTest, SmallLinearWeightsOfSmallInt8ValuesCount) {
  constexpr std::int64_t kRows = 1024, kKeyDim = 32;
  std::vector<float> keys(kRows * kKeyDim);
  for (std::int64_t r = 0; r < kRows; ++r) {
    keys[r * kKeyDim] = r == 0 ? 0x1.1p-60f : 0x1.01p-75f;
  }
  const TestRows rows(kRows, kKeyDim, 1, keys, std::vector<float>(kRows, 0x1.1p-60f),
                      StorageType::kInt8);
  std::vector<float> query(kKeyDim);
  query[0] = 1;
  const AttentionTask task = rows.Task(query, {.score = Score::kDot, .mode = Mode::kLinear});
  const AttentionAnswer answer = MustAttend(task);
  EXPECT_NEAR(answer.values[0] / rows.Reference(task).values[0], 1, 1e-5);
}

TEST(AttendTest, SmallLinearWeightsOfInt8KeysCountBesideALargeComponent) {
  constexpr std::int64_t kRows = 1024, kKeyDim = 64;
  std::vector<float> keys(kRows * kKeyDim, 0.1f), query(kKeyDim, 1e-8f);
  for (std::int64_t r = 0; r < kRows; ++r) keys[r * kKeyDim] = 0;
  query[0] = 15;
  const TestRows rows(kRows, kKeyDim, 1, keys, std::vector<float>(kRows, 0.7f), StorageType::kInt8);
  const AttentionTask task = rows.Task(query, {.score = Score::kDot, .mode = Mode::kLinear});
  const AttentionAnswer answer = MustAttend(task);
  EXPECT_NEAR(answer.values[0] / rows.Reference(task).values[0], 1, 1e-5);
}

// The products of query and key cancel but for what float32 rounding of the keys leaves, and the
// weights cancel each other.
TEST(AttendTest, LinearLogitsThatCancelKeepTheirBound) {
  constexpr std::int64_t kRows = 300, kDim = 64;
  const std::vector<float> query = NormalFloats(kDim, 1, 1.45);
  std::vector<float> keys = NormalFloats(kRows * kDim, 2, 1.45);
  double square = 0;
  for (const float component : query) square += static_cast<double>(component) * component;
  for (std::int64_t r = 0; r < kRows; ++r) {
    float* const key = &keys[r * kDim];
    double product = 0;
    for (std::int64_t i = 0; i < kDim; ++i) product += static_cast<double>(query[i]) * key[i];
    for (std::int64_t i = 0; i < kDim; ++i) {
      key[i] = static_cast<float>(key[i] - product / square * query[i]);
    }
  }
  const TestRows rows(kRows, kDim, 5, keys, NormalFloats(kRows * 5, 3));
  const AttentionTask task = rows.Task(query, {.mode = Mode::kLinear});
  EXPECT_LE(RelativeError(MustAttend(task).values, rows.Reference(task).values), 1e-5);
}

TEST(AttendTest, ALinearAnswerBeyondFloat32SaturatesToItsLargestNumber) {
  const TestRows rows(4, 20, 3, std::vector<float>(80, 1e30f), std::vector<float>(12, 1e30f));
  const std::vector<float> query(20, -1e30f);
  const AttentionAnswer answer =
      MustAttend(rows.Task(query, {.score = Score::kDot, .mode = Mode::kLinear}));
  for (const float value : answer.values) {
    EXPECT_EQ(value, -std::numeric_limits<float>::max());
  }
}

TEST(AttendTest, DistancesDoNotCancelFarFromTheOrigin) {
  // Keys that differ by 1e-3 at 1000: |q|^2 - 2 q.k + |k|^2 would have nothing left of it.
  std::vector<float> keys(20 * 32, 1000.0f), values(20);
  for (int row = 0; row < 20; ++row) {
    keys[row * 32] += static_cast<float>(row) * 0.5f;
    values[row] = static_cast<float>(row);
  }
  const TestRows rows(20, 32, 1, keys, values);
  const std::vector<float> query(32, 1000.0f);
  const AttentionTask task = rows.Task(query, {.score = Score::kSquaredEuclidean});
  EXPECT_LE(RelativeError(MustAttend(task).values, rows.Reference(task).values), 1e-6);
}

TEST(AttendTest, NoRowsAreAnAnswer) {
  const TestRows rows(10, 4, 2, 1);
  const std::vector<float> queries = NormalFloats(3 * 4, 2);
  AttentionTask task = rows.Task(queries, {.weights = WeightsMode::kAll});
  task.end = 0;
  task.blocks = {};
  const AttentionAnswer answer = MustAttend(task);
  EXPECT_THAT(answer.values, ::testing::Each(0.0f));
  EXPECT_THAT(answer.values, ::testing::SizeIs(6));
  EXPECT_EQ(answer.stats[0].counted_rows, 0u);
  EXPECT_EQ(answer.stats[0].log_sum_exp, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(answer.weights[2].rows.empty());
}

TEST(AttendTest, SplitRangesMergeByLogSumExp) {
  const TestRows rows(3000, 24, 6, 41);
  const std::vector<float> queries = NormalFloats(4 * 24, 42);
  const AttentionAnswer whole = MustAttend(rows.Task(queries, {}));
  AttentionTask left = rows.Task(queries, {}), right = left;
  left.end = right.begin = 1234;
  const AttentionAnswer a = MustAttend(left), b = MustAttend(right);
  for (int t = 0; t < 4; ++t) {
    const double la = a.stats[t].log_sum_exp, lb = b.stats[t].log_sum_exp;
    const double lse = std::max(la, lb) + std::log1p(std::exp(-std::abs(la - lb)));
    EXPECT_NEAR(lse, whole.stats[t].log_sum_exp, 1e-6);
    for (int i = 0; i < 6; ++i) {
      EXPECT_NEAR(
          std::exp(la - lse) * a.values[t * 6 + i] + std::exp(lb - lse) * b.values[t * 6 + i],
          whole.values[t * 6 + i], 1e-6);
    }
  }
}

TEST(AttendTest, AnAnswerOverTheLimitSaysHowManyBytesItNeeds) {
  const TestRows rows(1000, 4, 2, 1);
  const std::vector<float> queries = NormalFloats(3 * 4, 2);
  AttentionTask task = rows.Task(queries, {.weights = WeightsMode::kAll});
  task.answer_bytes_max = 10'000;
  const CancelToken cancel;
  // 3 * 1000 weights of at least 8 + 8 + 1 bytes, 3 * 2 floats, 3 statistics and lists.
  EXPECT_THAT(Attend(task, Pool(), cancel).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, "at least 51090 bytes"));
  task.options.weights = WeightsMode::kNone;
  EXPECT_THAT(Attend(task, Pool(), cancel).status(), IsOk());
}

TEST(AttendTest, ListingAllWeightsChangesNoAnswer) {
  // 80 queries offer more rows than an answer may list; top_k leaves few of them.
  constexpr std::int64_t kRows = 100'000;
  std::vector<float> numbers(kRows);
  for (std::int64_t i = 0; i < kRows; ++i) numbers[i] = static_cast<float>(i);
  const TestRows rows(kRows, 1, 1, numbers, numbers);
  const std::vector<float> queries(80, 1.0f);
  const ResolvedOptions options{.score = Score::kDot, .top_k = 10};
  ResolvedOptions all = options;
  all.weights = WeightsMode::kAll;
  const AttentionAnswer expected = MustAttend(rows.Task(queries, options));
  const AttentionAnswer answer = MustAttend(rows.Task(queries, all));
  EXPECT_EQ(answer.values, expected.values);
  EXPECT_NEAR(answer.values[0], 99999 - 0.58, 0.01);
  EXPECT_EQ(answer.weights[79].rows.size(), 10u);
}

TEST(AttendTest, KeysFarFromTheOriginKeepTheirLogits) {
  // Scores that cancel: the queries are orthogonal to the keys' common offset.
  constexpr std::int64_t kRows = 2000, kDim = 128, kQueries = 8;
  std::vector<float> queries = NormalFloats(kQueries * kDim, 52);
  for (std::int64_t t = 0; t < kQueries; ++t) {
    float mean = 0;
    for (std::int64_t i = 0; i < kDim; ++i) mean += queries[t * kDim + i] / kDim;
    for (std::int64_t i = 0; i < kDim; ++i) queries[t * kDim + i] -= mean;
  }
  for (const float offset : {100.0f, 10000.0f}) {
    std::vector<float> keys = NormalFloats(kRows * kDim, 51);
    for (float& component : keys) component += offset;
    const TestRows rows(kRows, kDim, 8, keys, NormalFloats(kRows * 8, 53));
    const AttentionTask task = rows.Task(queries, {.score = Score::kDot});
    EXPECT_LE(RelativeError(MustAttend(task).values, rows.Reference(task).values), 1e-5) << offset;
  }
}

// Equal components round the same way every time: the worst case of a sum in float32. Half of the
// rows have one key, half another one near it, and values that show the difference.
TEST(AttendTest, ComponentsThatRoundAlikeKeepTheirLogits) {
  struct Case {
    Score score;
    double temperature;
    std::int64_t dim;
    float query;  // All components. The keys' are around 1.
    bool halves_cancel;
  };
  constexpr Case kCases[] = {
      {Score::kDot, 0.27, 32, 1, false},
      {Score::kDot, 1, 128, 1, false},
      {Score::kDot, 0.5, 128, 4, true},
      {Score::kScaledDot, 0.2, 512, 1, false},
      {Score::kSquaredEuclidean, 1, 128, 0, false},
      {Score::kEuclidean, 0.1, 128, 0, false},
  };
  constexpr std::int64_t kRows = 40;
  std::mt19937_64 generator(61);
  std::uniform_real_distribution<float> around_1(0.75f, 1.25f);
  for (const Case& c : kCases) {
    for (int trial = 0; trial < 100; ++trial) {
      const float key = around_1(generator), other_key = key * (1 + 3e-4f * around_1(generator));
      std::vector<float> keys, values;
      for (std::int64_t row = 0; row < kRows; ++row) {
        for (std::int64_t i = 0; i < c.dim; ++i) {
          const float component = row % 2 == 0 ? key : other_key;
          keys.push_back(c.halves_cancel && i >= c.dim / 2 ? -component : component);
        }
        values.push_back(row % 2 == 0 ? 1 : -1);
      }
      const TestRows rows(kRows, c.dim, 1, keys, values);
      const std::vector<float> query(c.dim, c.query);
      const AttentionTask task = rows.Task(query, {.score = c.score, .temperature = c.temperature});
      // The answers may cancel: an error is relative to the values, which are 1.
      ASSERT_NEAR(MustAttend(task).values[0], rows.Reference(task).values[0], 1e-5)
          << "score " << static_cast<int>(c.score) << ", " << c.dim << " dimensions";
    }
  }
}

// Where a score decides which rows count there is no tolerance.
TEST(AttendTest, RowsThatDifferInTheirLastBitAreToldApart) {
  constexpr std::int64_t kDim = 32;
  std::vector<float> keys(2 * kDim, 1);
  keys.back() += 0x1p-23f;
  const TestRows rows(2, kDim, 1, keys, {10, 20});
  const std::vector<float> query(kDim, 1);
  for (const ResolvedOptions& options :
       {ResolvedOptions{.score = Score::kDot, .mode = Mode::kHard},
        ResolvedOptions{.score = Score::kDot, .top_k = 1},
        ResolvedOptions{.score = Score::kDot, .min_score = kDim + 0x1p-23}}) {
    EXPECT_EQ(MustAttend(rows.Task(query, options)).values[0], 20);
  }
}

TEST(AttendTest, ManyHeadsOfAnEmptyStoreAreBoundedByTheAnswer) {
  TestRows rows(1, 4096, 4096, 1);
  const std::vector<float> queries(4000 * 4096);
  AttentionTask task =
      rows.Task(queries, {.weights = WeightsMode::kTop, .top_weights = 10}, /*num_heads=*/4096);
  task.end = 0;
  task.blocks = {};
  const CancelToken cancel;
  EXPECT_THAT(Attend(task, Pool(), cancel).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, "at least"));
}

TEST(AttendTest, StopsWhenItIsCancelledOrLate) {
  const TestRows rows(5000, 64, 64, 1);
  const std::vector<float> queries = NormalFloats(256 * 64, 2);
  const AttentionTask task = rows.Task(queries, {});
  CancelToken cancelled;
  cancelled.Cancel();
  EXPECT_THAT(Attend(task, Pool(), cancelled).status(), StatusIs(absl::StatusCode::kCancelled, ""));
  const CancelToken late(absl::Now() - absl::Milliseconds(1));
  EXPECT_THAT(Attend(task, Pool(), late).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
}

// The scan would take a tenth of a second or more. How late it ends is recorded, and fails nothing.
TEST(AttendTest, ADeadlineInTheMiddleEndsTheScan) {
  const TestRows rows(60'000, 64, 64, 1);
  const std::vector<float> queries = NormalFloats(512 * 64, 2);
  const AttentionTask task = rows.Task(queries, {});
  const absl::Time deadline = absl::Now() + absl::Milliseconds(5);
  const CancelToken token(deadline);
  EXPECT_THAT(Attend(task, Pool(), token).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  const absl::Duration late = absl::Now() - deadline;
  RecordProperty("late_ms", absl::StrCat(absl::ToDoubleMilliseconds(late)));
}

}  // namespace
}  // namespace softlookup
