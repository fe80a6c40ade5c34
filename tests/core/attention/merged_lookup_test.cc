#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "softlookup/partial_lookup.h"
#include "tests/core/attention/look_answers.h"
#include "tests/core/attention/merged_parts.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/golden.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::GoldenLookup;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::ReadGoldenLookups;
using ::softlookup::testing::RelativeError;
using ::softlookup::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kRows = 9000, kKeyDim = 8, kValueDim = 12, kHeads = 4, kQueries = 3;

bool GoOn() { return true; }

// Every case of the golden file, over 1, 2, 3 and 7 ranges.
TEST(MergedLookupTest, GoldenCasesHoldOverRanges) {
  int cases = 0;
  for (const GoldenLookup& golden : ReadGoldenLookups()) {
    SCOPED_TRACE(golden.name);
    TestRows rows(golden.row_count, golden.key_dim, golden.value_dim, golden.keys, golden.values);
    if (!golden.allowed.empty()) rows.Allow(golden.allowed);
    auto options = ResolveOptions(golden.options, Score::kScaledDot, 1, Limits());
    ASSERT_THAT(options, IsOk());
    for (const WeightsMode weights : {WeightsMode::kAll, WeightsMode::kTop, WeightsMode::kNone}) {
      options->weights = weights;
      options->top_weights = 3;
      const AttentionTask task = rows.Task(golden.queries, *options, golden.num_heads);
      const AttentionAnswer one_machine = MustAttend(task);
      for (const std::uint64_t count : {1, 2, 3, 7}) {
        SCOPED_TRACE(absl::StrCat(count, " ranges"));
        const auto row_count = static_cast<std::uint64_t>(golden.row_count);
        const LookupResult merged = AttendInParts(task, EqualRanges(row_count, count));
        ASSERT_NO_FATAL_FAILURE(ExpectSameAnswer(merged, one_machine));
        if (count == 1) {
          ASSERT_NO_FATAL_FAILURE(ExpectSameBits(merged, one_machine));
        }
        EXPECT_LE(RelativeError(merged.values, golden.expected_values), 1e-5);
        for (std::size_t i = 0; i < merged.weights.size(); ++i) {
          if (weights != WeightsMode::kAll) continue;
          EXPECT_LE(
              RelativeError(Dense(merged.weights[i], golden.row_count), golden.expected_weights[i]),
              1e-5);
        }
      }
    }
    ++cases;
  }
  EXPECT_GE(cases, 59);
}

const TestRows& Rows() {
  static const TestRows& rows = *new TestRows(kRows, kKeyDim, kValueDim, 1);
  return rows;
}

const std::vector<float>& Queries() {
  static const auto& queries = *new std::vector<float>(NormalFloats(kQueries * kKeyDim, 3));
  return queries;
}

std::vector<ResolvedOptions> ManyMergedOptions() {
  std::vector<ResolvedOptions> all;
  for (const Mode mode : {Mode::kSoft, Mode::kHard, Mode::kLinear}) {
    for (const std::uint64_t top_k : {0, 1, 40, 8500}) {
      for (const WeightsMode weights : {WeightsMode::kNone, WeightsMode::kTop, WeightsMode::kAll}) {
        all.push_back({.temperature = 0.5,
                       .mode = mode,
                       .top_k = top_k,
                       .min_score = all.size() % 2 == 0 ? 0.1 : -kInfiniteLogit,
                       .ln_decay = all.size() % 3 == 0 ? -0.001 : 0,
                       .causal = all.size() % 5 == 0,
                       .causal_offset = 4000,
                       .weights = weights,
                       .top_weights = 25,
                       .max_error = all.size() % 7 == 0 ? 0.001 : 0});
      }
    }
  }
  return all;
}

TEST(MergedLookupTest, OneRangeHasTheBitsOfOneMachine) {
  for (const ResolvedOptions& options : ManyMergedOptions()) {
    const AttentionTask task = Rows().Task(Queries(), options, kHeads);
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(AttendInParts(task, {{}}), MustAttend(task)));
  }
}

// Empty ranges, ranges of one row, and ranges that end within a block, a panel or a merge group.
TEST(MergedLookupTest, AnyRangesHaveTheAnswerOfOneMachine) {
  for (const ResolvedOptions& options : ManyMergedOptions()) {
    SCOPED_TRACE(absl::StrCat("mode ", static_cast<int>(options.mode), ", top_k ", options.top_k,
                              ", weights ", static_cast<int>(options.weights)));
    const AttentionTask task = Rows().Task(Queries(), options, kHeads);
    const AttentionAnswer expected = MustAttend(task);
    for (const auto& cuts : std::vector<std::vector<std::uint64_t>>{
             {4096}, {0, 1, 1, 2, 1023, 5000}, {100, 200, 8192, 9000, 9000}}) {
      ASSERT_NO_FATAL_FAILURE(ExpectSameAnswer(AttendInParts(task, RangesBetween(cuts)), expected));
    }
  }
}

TEST(MergedLookupTest, BitsDependNeitherOnThreadsNorOnRepetition) {
  ForkJoinPool one(1, 1), three(3, 16);
  const std::vector<PositionRange> ranges = RangesBetween({1500, 4096, 8000});
  for (const ResolvedOptions& options : ManyMergedOptions()) {
    const AttentionTask task = Rows().Task(Queries(), options, kHeads);
    LookupResult first = AttendInParts(task, ranges, one);
    const AttentionAnswer expected{.values = std::move(first.values),
                                   .stats = std::move(first.stats),
                                   .weights = std::move(first.weights)};
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(AttendInParts(task, ranges, three), expected));
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(AttendInParts(task, ranges, three), expected));
  }
}

// All rows are the same, so the lowest positions are chosen and listed, whatever their range.
TEST(MergedLookupTest, TiesGoToTheLowestPositionAcrossRanges) {
  const TestRows rows(600, 2, 1, std::vector<float>(1200, 1), NormalFloats(600, 5));
  const std::vector<float> query = {1, 1};
  for (const Mode mode : {Mode::kSoft, Mode::kHard, Mode::kLinear}) {
    for (const std::uint64_t top_k : {0, 250}) {
      const AttentionTask task = rows.Task(
          query, {.mode = mode, .top_k = top_k, .weights = WeightsMode::kTop, .top_weights = 300});
      const LookupResult merged = AttendInParts(task, RangesBetween({100, 230, 280}));
      ASSERT_NO_FATAL_FAILURE(ExpectSameAnswer(merged, MustAttend(task)));
      const std::uint64_t listed = top_k == 0 ? 300 : 250;
      ASSERT_EQ(merged.weights[0].rows.size(), listed);
      for (std::uint64_t i = 0; i < listed; ++i) {
        ASSERT_EQ(merged.weights[0].rows[i].position, i);
      }
    }
  }
}

// A weight of 0 in the whole answer need not be 0 among the rows of its range.
TEST(MergedLookupTest, RowsOfWeight0AreListedByPosition) {
  std::vector<float> keys(3000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<float>(i % 7) - 3000;
  keys[2600] = 3000;
  const TestRows rows(3000, 1, 1, keys, NormalFloats(3000, 5));
  const std::vector<float> query = {1};
  const AttentionTask task =
      rows.Task(query, {.score = Score::kDot, .weights = WeightsMode::kTop, .top_weights = 5});
  const LookupResult merged = AttendInParts(task, RangesBetween({3, 1000, 2048}));
  ASSERT_NO_FATAL_FAILURE(ExpectSameAnswer(merged, MustAttend(task)));
  std::vector<std::uint64_t> positions;
  for (const WeightedRow& row : merged.weights[0].rows) positions.push_back(row.position);
  EXPECT_THAT(positions, ElementsAre(2600, 0, 1, 2, 3));
  EXPECT_EQ(merged.stats[0].entropy, 0);
}

// The rows of a running memory are in another range than those of the filter.
TEST(MergedLookupTest, ARunningMemoryCountsOnceInWhicheverRangeItIs) {
  std::vector<double> key(kKeyDim, 0.1), value(kValueDim);
  for (std::int64_t i = 0; i < kValueDim; ++i) value[i] = 1.0 + static_cast<double>(i);
  for (ResolvedOptions options : ManyMergedOptions()) {
    if (options.causal) options.causal_offset = 4500;
    AttentionTask task = Rows().Task(Queries(), options, kHeads);
    task.begin = 4300;
    task.memory = MemoryPair{
        .key = key.data(), .value = value.data(), .multiplicity = 4300, .position = 4299};
    const AttentionAnswer expected = MustAttend(task);
    for (const auto& cuts :
         std::vector<std::vector<std::uint64_t>>{{}, {4299}, {4300}, {1000, 4200, 4400, 8000}}) {
      const LookupResult merged = AttendInParts(task, RangesBetween(cuts));
      ASSERT_NO_FATAL_FAILURE(ExpectSameAnswer(merged, expected));
      if (cuts.empty()) {
        ASSERT_NO_FATAL_FAILURE(ExpectSameBits(merged, expected));
      }
    }
    // The memory alone.
    task.begin = task.end;
    task.blocks = {};
    task.memory->position = task.end - 1;
    const LookupResult alone = AttendInParts(task, RangesBetween({4300, 8999}));
    ASSERT_NO_FATAL_FAILURE(ExpectSameAnswer(alone, MustAttend(task)));
  }
}

// Looks leave out rows in each range by themselves. The error that is stated still holds.
TEST(MergedLookupTest, TheErrorBoundHoldsWhereRangesLeaveRowsOut) {
  const std::vector<float> keys = KeysByCluster();
  const TestRows rows = RowsOfKeys(keys);
  constexpr std::int64_t kBlock = kernels::kBlockRowsMax;
  std::vector<float> queries(keys.begin() + 5000 * kLookDim, keys.begin() + 5001 * kLookDim);
  queries.insert(queries.end(), keys.begin() + 9000 * kLookDim, keys.begin() + 9001 * kLookDim);
  std::uint64_t left_out = 0;
  for (const double temperature : {0.01, 0.05, 0.2}) {
    for (const double max_error : {0.0, 0.001, 0.1}) {
      for (const WeightsMode weights : {WeightsMode::kNone, WeightsMode::kTop}) {
        for (const std::uint64_t top_k : {0, 30}) {
          SCOPED_TRACE(absl::StrCat("temperature ", temperature, ", max_error ", max_error,
                                    ", top_k ", top_k));
          const AttentionTask task = rows.Task(queries, {.score = Score::kCosine,
                                                         .temperature = temperature,
                                                         .top_k = top_k,
                                                         .weights = weights,
                                                         .max_error = max_error});
          const AttentionAnswer one_machine = MustAttend(task);
          ASSERT_NO_FATAL_FAILURE(ExpectSameBits(AttendInParts(task, {{}}), one_machine));
          for (const auto& cuts : std::vector<std::vector<std::uint64_t>>{
                   {6 * kBlock}, {4 * kBlock, 8 * kBlock}, {1000, 7500}}) {
            const LookupResult merged = AttendInParts(task, RangesBetween(cuts));
            ASSERT_NO_FATAL_FAILURE(ExpectRight(rows, task, merged));
            for (std::size_t t = 0; t < merged.stats.size(); ++t) {
              left_out += merged.stats[t].counted_rows - merged.stats[t].summed_rows;
            }
            if (max_error > 0) continue;
            for (std::size_t i = 0; i < merged.values.size(); ++i) {
              ASSERT_NEAR(merged.values[i], one_machine.values[i], 1e-6 * kValueMax);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(left_out, 1000u);
}

TEST(MergedLookupTest, NoRowsHaveTheValue0) {
  for (const std::uint64_t top_k : {0, 3}) {
    const AttentionTask task =
        Rows().Task(Queries(), {.top_k = top_k, .min_score = 1e9, .weights = WeightsMode::kTop});
    const LookupResult merged = AttendInParts(task, RangesBetween({100, 5000}));
    ASSERT_NO_FATAL_FAILURE(ExpectSameAnswer(merged, MustAttend(task)));
    EXPECT_EQ(merged.stats[0].counted_rows, 0);
    EXPECT_EQ(merged.stats[0].log_sum_exp, -kInfiniteLogit);
    EXPECT_THAT(merged.weights[0].rows, IsEmpty());
  }
}

// A second phase is only needed for rows that top_k selects, and only where they are.
TEST(MergedLookupTest, OnlyRangesWithSelectedRowsAreAskedAgain) {
  const std::vector<PositionRange> ranges = RangesBetween({3000, 6000});
  const auto merge = [&](const AttentionTask& task) {
    std::vector<PartialLookup> parts;
    for (const PositionRange& range : ranges) parts.push_back(AnswerOfPart(task, range));
    return MergedLookup::Merge(std::move(parts), task.answer_bytes_max, GoOn);
  };
  const std::vector<float> query = NormalFloats(kKeyDim, 9);
  for (const Mode mode : {Mode::kSoft, Mode::kHard, Mode::kLinear}) {
    const auto merged = merge(Rows().Task(query, {.mode = mode, .weights = WeightsMode::kTop}));
    ASSERT_THAT(merged, IsOk());
    for (const RowSumsRequest& request : merged->requests()) EXPECT_TRUE(request.empty());
  }
  const auto best = merge(Rows().Task(query, {.top_k = 1}));
  ASSERT_THAT(best, IsOk());
  int asked = 0;
  for (const RowSumsRequest& request : best->requests()) asked += request.empty() ? 0 : 1;
  EXPECT_EQ(asked, 1);
  // HARD reads one value, whatever top_k selects and lists.
  const auto hard =
      merge(Rows().Task(query, {.mode = Mode::kHard, .top_k = 50, .weights = WeightsMode::kAll}));
  ASSERT_THAT(hard, IsOk());
  std::size_t weighed = 0, ids = 0;
  for (const RowSumsRequest& request : hard->requests()) {
    for (const auto& rows : request.rows) weighed += rows.size();
    ids += request.id_positions.size();
  }
  EXPECT_EQ(weighed, 1u);
  EXPECT_EQ(ids, 50u);
}

class MisfitTest : public ::testing::Test {
 protected:
  MisfitTest() : task_(Rows().Task(Queries(), {.top_k = 3, .weights = WeightsMode::kTop})) {
    for (const PositionRange& range : RangesBetween({2000, 5000})) {
      parts_.push_back(AnswerOfPart(task_, range));
    }
  }

  // Merges the parts after `spoil` has changed the second one.
  template <typename Spoil>
  absl::Status Merge(const Spoil& spoil) {
    std::vector<PartialLookup> parts = parts_;
    spoil(parts[1]);
    return MergedLookup::Merge(std::move(parts), task_.answer_bytes_max, GoOn).status();
  }

  const AttentionTask task_;
  std::vector<PartialLookup> parts_;
};

TEST_F(MisfitTest, PartsThatDoNotFitTogetherAreRefused) {
  EXPECT_THAT(Merge([](PartialLookup&) {}), IsOk());
  const auto expect_refused = [this](auto spoil) {
    EXPECT_THAT(Merge(spoil), StatusIs(absl::StatusCode::kInternal, "from"));
  };
  expect_refused([](PartialLookup& part) { ++part.revision; });
  expect_refused([](PartialLookup& part) { ++part.incarnation; });
  expect_refused([](PartialLookup& part) { ++part.row_count; });
  expect_refused([](PartialLookup& part) { ++part.shape.top_weights; });
  expect_refused([](PartialLookup& part) { ++part.attended.begin; });
  expect_refused([](PartialLookup& part) { part.range = {.begin = 2001, .end = 5000}; });
  expect_refused([](PartialLookup& part) { part.range.end = 4999; });
  expect_refused([](PartialLookup& part) { part.answers.pop_back(); });
  expect_refused([](PartialLookup& part) { part.answers[2].state.counted_rows = 1; });
  expect_refused([](PartialLookup& part) { part.answers[2].sum = {1}; });
  expect_refused([](PartialLookup& part) { part.answers[2].rows.best[0].position = 5000; });
  expect_refused([](PartialLookup& part) {
    std::swap(part.answers[2].rows.best[0], part.answers[2].rows.best[1]);
  });
  expect_refused([](PartialLookup& part) {
    std::vector<CountedRow>& best = part.answers[2].rows.best;
    best.push_back(best.back());
    ++best.back().position;
  });
  expect_refused(
      [](PartialLookup& part) { part.answers[2].rows.first = {part.answers[2].rows.best[0]}; });
  expect_refused([](PartialLookup& part) {
    part.answers[2].rows.unranked_memory = part.answers[2].rows.best[0];
  });
  expect_refused([](PartialLookup& part) { part.ids = {{.position = 1999}}; });
  expect_refused([](PartialLookup& part) {
    part.ids = {{.position = 2001}, {.position = 2000}, {.position = 2002}};
  });
}

TEST_F(MisfitTest, EveryRowMustBeInARange) {
  std::vector<PartialLookup> parts = parts_;
  parts.pop_back();
  EXPECT_THAT(MergedLookup::Merge(std::move(parts), task_.answer_bytes_max, GoOn).status(),
              StatusIs(absl::StatusCode::kInternal, "in no range"));
  parts = parts_;
  parts.erase(parts.begin());
  EXPECT_THAT(MergedLookup::Merge(std::move(parts), task_.answer_bytes_max, GoOn).status(),
              StatusIs(absl::StatusCode::kInternal, "in no range"));
  EXPECT_THAT(MergedLookup::Merge({}, task_.answer_bytes_max, GoOn).status(),
              StatusIs(absl::StatusCode::kInternal, "No range"));
}

TEST_F(MisfitTest, SumsThatWereAskedForMustCome) {
  auto merged = MergedLookup::Merge(parts_, task_.answer_bytes_max, GoOn);
  ASSERT_THAT(merged, IsOk());
  EXPECT_THAT(merged->Finish({}, [] { return true; }).status(),
              StatusIs(absl::StatusCode::kInternal, "asked for"));
  EXPECT_THAT(merged->Finish(std::vector<RowSums>(3), [] { return true; }).status(),
              StatusIs(absl::StatusCode::kInternal, "asked for"));
}

TEST_F(MisfitTest, IdsOfRowsOfAnotherRangeAreRefused) {
  auto merged = MergedLookup::Merge(parts_, task_.answer_bytes_max, GoOn);
  ASSERT_THAT(merged, IsOk());
  std::vector<RowSums> sums(3);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (merged->requests()[i].empty()) continue;
    if (!merged->requests()[i].rows.empty()) {
      sums[i].sums.resize(static_cast<std::size_t>(task_.query_count() * task_.value_dim));
    }
    sums[i].ids = {{.position = parts_[i].range.begin}, {.position = parts_[i].range.begin}};
  }
  EXPECT_THAT(merged->Finish(sums, [] { return true; }).status(),
              StatusIs(absl::StatusCode::kInternal, "ids of"));
}

TEST_F(MisfitTest, AMergeEndsOnceItIsCancelled) {
  const absl::Status status =
      MergedLookup::Merge(parts_, task_.answer_bytes_max, [] { return false; }).status();
  EXPECT_EQ(ReasonOf(status), "CANCELLED");
}

TEST_F(MisfitTest, AnAnswerThatIsTooLargeIsRefusedAsOnOneMachine) {
  AttentionTask task = Rows().Task(Queries(), {.weights = WeightsMode::kAll}, kHeads);
  task.answer_bytes_max = 100'000;
  const CancelToken cancel;
  const absl::Status expected = Attend(task, Pool(), cancel).status();
  ASSERT_EQ(ReasonOf(expected), "ANSWER_TOO_LARGE");
  // The parts fit, but not all of them together.
  std::vector<PartialLookup> parts;
  task.answer_bytes_max = 10'000'000;
  for (const PositionRange& range : EqualRanges(kRows, 3)) {
    parts.push_back(AnswerOfPart(task, range));
  }
  EXPECT_EQ(MergedLookup::Merge(std::move(parts), 100'000, GoOn).status().message(),
            expected.message());
}

}  // namespace
}  // namespace softlookup
