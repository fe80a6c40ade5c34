// The weights that a TaskAnswer lists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/attention/task_answer.h"
#include "tests/core/attention/played_pass.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::SizeIs;

// What is listed if a pass finds `rows`, one after another as blocks of one row.
QueryWeights Listed(const ResolvedOptions& options, const std::vector<CountedRow>& rows) {
  PlayedPass pass(TaskOf(options));
  EXPECT_THAT(pass.Begin(), IsOk());
  for (const CountedRow& row : rows) pass.Find(0, {row});
  return pass.MustFinish().weights.at(0);
}

ResolvedOptions All(Mode mode = Mode::kSoft) {
  return {.mode = mode, .weights = WeightsMode::kAll};
}
ResolvedOptions Top(std::int64_t count, Mode mode = Mode::kSoft) {
  return {.mode = mode, .weights = WeightsMode::kTop, .top_weights = count};
}

// Rows at the positions from 0 on.
std::vector<CountedRow> RowsOf(const std::vector<double>& logits) {
  std::vector<CountedRow> rows;
  for (const double logit : logits) rows.push_back({.position = rows.size(), .logit = logit});
  return rows;
}

// TOP must list what ALL lists first, for each number of weights that is asked for. ALL must list
// all rows, as the contract orders them.
void ExpectTopIsTheBeginOfAll(Mode mode, const std::vector<CountedRow>& rows) {
  const std::vector<WeightedRow> all = Listed(All(mode), rows).rows;
  ASSERT_THAT(all, SizeIs(rows.size()));
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.position < b.position;
  }));
  for (std::size_t count = 1; count <= rows.size() + 1; ++count) {
    const std::vector<WeightedRow> top =
        Listed(Top(static_cast<std::int64_t>(count), mode), rows).rows;
    ASSERT_THAT(top, SizeIs(std::min(count, rows.size())));
    for (std::size_t i = 0; i < top.size(); ++i) {
      ASSERT_EQ(top[i].position, all[i].position) << "rank " << i << " of " << count;
      ASSERT_EQ(top[i].weight, all[i].weight) << "rank " << i << " of " << count;
    }
  }
}

TEST(TaskAnswerListsTest, LargerWeightsComeFirstAndThenLowerPositions) {
  const std::vector<CountedRow> rows = {{.position = 5, .logit = 0, .score = 50},
                                        {.position = 9, .logit = std::log(2), .score = 90},
                                        {.position = 700, .logit = 0, .score = 70},
                                        {.position = 1500, .logit = std::log(4), .score = 15}};
  const QueryWeights soft = Listed(All(), rows);
  ASSERT_THAT(PositionsOf(soft), ElementsAre(1500, 9, 5, 700));
  const double weights[] = {0.5, 0.25, 0.125, 0.125}, scores[] = {15, 90, 50, 70};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(soft.rows[i].weight, weights[i], 1e-12);
    EXPECT_EQ(soft.rows[i].score, scores[i]);
  }
  const QueryWeights linear = Listed(All(Mode::kLinear), rows);
  EXPECT_EQ(linear.rows.at(0).weight, std::log(4));
  EXPECT_EQ(linear.rows.at(3).position, 700);
  const QueryWeights hard = Listed(All(Mode::kHard), rows);
  EXPECT_EQ(hard.rows.at(0).position, 1500);
  EXPECT_EQ(hard.rows.at(0).weight, 1);
  EXPECT_EQ(hard.rows.at(1).position, 5);
  EXPECT_EQ(hard.rows.at(1).weight, 0);
}

TEST(TaskAnswerListsTest, TopListsTheBeginOfWhatAllLists) {
  std::mt19937_64 generator(1);
  std::vector<double> logits;
  for (int i = 0; i < 60; ++i) logits.push_back(static_cast<double>(i % 12));
  std::shuffle(logits.begin(), logits.end(), generator);
  for (const Mode mode : {Mode::kSoft, Mode::kHard, Mode::kLinear}) {
    ExpectTopIsTheBeginOfAll(mode, RowsOf(logits));
  }
}

// So many rows that the collectors leave some out while they are filled.
TEST(TaskAnswerListsTest, LogitsThatDifferTooLittleToShowInAWeightTie) {
  std::vector<double> logits(10, -20.0);
  for (int j = 0; j < 190; ++j) logits.push_back(1e-20 * j);
  ExpectTopIsTheBeginOfAll(Mode::kSoft, RowsOf(logits));
  EXPECT_THAT(PositionsOf(Listed(Top(5), RowsOf(logits))), ElementsAre(10, 11, 12, 13, 14));
  // In LINEAR mode a logit is a weight.
  EXPECT_EQ(Listed(Top(5, Mode::kLinear), RowsOf(logits)).rows.at(0).position, 199);
}

// Neighbours among logits are spread over several weights that are neighbours, too.
TEST(TaskAnswerListsTest, LogitsThatAreNeighboursTieOnlyWithTheirNeighbours) {
  for (const double around : {0.1, 3.0, -700.0, 1e6}) {
    std::vector<double> logits(20, around - 3);
    logits.push_back(around + 1);
    for (int j = 0; j < 150; ++j) logits.push_back(around + around * 0x1p-52 * j * 37);
    for (int j = 0; j < 30; ++j) logits.push_back(around - 700 - 0.1 * j);
    ExpectTopIsTheBeginOfAll(Mode::kSoft, RowsOf(logits));
  }
  // Small logits are neighbours in their difference from a large one only.
  std::vector<double> logits = {600};
  for (int j = 0; j < 190; ++j) logits.push_back(0x1p-47 * j);
  ExpectTopIsTheBeginOfAll(Mode::kSoft, RowsOf(logits));
}

TEST(TaskAnswerListsTest, LogitsThatDifferByMoreDoNotTie) {
  for (const double logit : {-0.5, -20.0, -300.0, -707.0}) {
    const QueryWeights all = Listed(All(), RowsOf({0, logit, logit + 1e-12}));
    EXPECT_THAT(PositionsOf(all), ElementsAre(0, 2, 1)) << logit;
    EXPECT_GT(all.rows[1].weight, all.rows[2].weight) << logit;
    EXPECT_NEAR(all.rows[2].weight / std::exp(logit - std::log1p(2 * std::exp(logit))), 1, 1e-12);
  }
}

// The smallest numbers that are not 0 are so far apart that many logits have the same one.
TEST(TaskAnswerListsTest, WeightsNear0Tie) {
  std::vector<double> logits(50, -1000.0);
  logits.push_back(0);
  for (int j = 0; j < 100; ++j) logits.push_back(-709 + 0.02 * j);
  for (int j = 0; j < 100; ++j) logits.push_back(-746 + 0.02 * j);
  ExpectTopIsTheBeginOfAll(Mode::kSoft, RowsOf(logits));
}

TEST(TaskAnswerListsTest, RowsOfWeight0AreListedByPosition) {
  const std::vector<CountedRow> rows = RowsOf({-1000, -900, 0, -800, -700, -850});
  const QueryWeights top = Listed(Top(4), rows);
  ASSERT_THAT(PositionsOf(top), ElementsAre(2, 4, 0, 1));
  EXPECT_GT(top.rows[1].weight, 0);
  EXPECT_EQ(top.rows[2].weight, 0);
  ExpectTopIsTheBeginOfAll(Mode::kSoft, rows);
  ExpectTopIsTheBeginOfAll(Mode::kHard, rows);
}

TEST(TaskAnswerListsTest, WeightsSumTo1AlsoWhereLogitsAreHuge) {
  for (const double logit : {0.0, -1e6, 1e12, 1e17, -1e30, 1e300}) {
    const QueryWeights two = Listed(All(), RowsOf({logit, logit}));
    EXPECT_NEAR(two.rows.at(0).weight, 0.5, 1e-12) << logit;
    EXPECT_NEAR(two.rows.at(1).weight, 0.5, 1e-12) << logit;
    EXPECT_EQ(Listed(All(), RowsOf({logit})).rows.at(0).weight, 1) << logit;
  }
}

// A scan rounds the sum of the weights, which can be a little less than its largest term.
TEST(TaskAnswerListsTest, NoSoftWeightIsMoreThan1) {
  PlayedPass pass(TaskOf(All()));
  ASSERT_THAT(pass.Begin(), IsOk());
  pass.Find(0, {{.position = 3, .logit = 5}});
  pass.state(0).state.weight = 1 - 1e-7;
  EXPECT_EQ(pass.MustFinish().weights.at(0).rows.at(0).weight, 1);
}

TEST(TaskAnswerListsTest, TheWeightThatIsNotListedRemains) {
  const std::vector<CountedRow> rows = RowsOf({0, std::log(2), 0, std::log(4)});
  EXPECT_NEAR(Listed(Top(1), rows).remaining_weight, 0.5, 1e-12);
  EXPECT_NEAR(Listed(Top(3), rows).remaining_weight, 0.125, 1e-12);
  EXPECT_EQ(Listed(Top(4), rows).remaining_weight, 0);
  EXPECT_EQ(Listed(All(), rows).remaining_weight, 0);
  EXPECT_EQ(Listed(Top(1, Mode::kHard), rows).remaining_weight, 0);
  const std::vector<CountedRow> signs = RowsOf({3, -8, 1});
  EXPECT_EQ(Listed(Top(1, Mode::kLinear), signs).remaining_weight, -7);
  EXPECT_EQ(Listed(Top(2, Mode::kLinear), signs).remaining_weight, -8);
  EXPECT_EQ(Listed(Top(3, Mode::kLinear), signs).remaining_weight, 0);
  // Many weights whose sum is more than 1 by a rounding error.
  for (int count = 2; count < 60; ++count) {
    std::vector<double> logits(static_cast<std::size_t>(count), 0.0);
    logits.push_back(-50);
    EXPECT_GE(Listed(Top(count), RowsOf(logits)).remaining_weight, 0) << count;
  }
}

TEST(TaskAnswerListsTest, TopKListsOnlyTheRowsThatItLeaves) {
  const std::vector<CountedRow> rows = RowsOf({0, std::log(2), 0, std::log(4), -1});
  for (const WeightsMode weights : {WeightsMode::kAll, WeightsMode::kTop}) {
    const QueryWeights listed = Listed({.top_k = 3, .weights = weights, .top_weights = 2}, rows);
    std::vector<std::uint64_t> positions = {3, 1};
    if (weights == WeightsMode::kAll) positions.push_back(0);
    ASSERT_EQ(PositionsOf(listed), positions);
    EXPECT_NEAR(listed.rows[0].weight, 4.0 / 7, 1e-12);
    EXPECT_NEAR(listed.rows[1].weight, 2.0 / 7, 1e-12);
    EXPECT_NEAR(listed.remaining_weight, weights == WeightsMode::kAll ? 0 : 1.0 / 7, 1e-12);
  }
  // The larger logit counts, be it so little larger that the weights tie. They are listed by
  // position.
  const QueryWeights close =
      Listed({.top_k = 2, .weights = WeightsMode::kAll}, RowsOf({0, 1e-20, 2e-20}));
  EXPECT_THAT(PositionsOf(close), ElementsAre(1, 2));
  const QueryWeights hard =
      Listed({.mode = Mode::kHard, .top_k = 2, .weights = WeightsMode::kAll}, RowsOf({1, 2, 2}));
  ASSERT_THAT(PositionsOf(hard), ElementsAre(1, 2));
  EXPECT_EQ(hard.rows[0].weight, 1);
  EXPECT_EQ(hard.rows[1].weight, 0);
}

TEST(TaskAnswerListsTest, InHardModeTheLargestLogitIsListedHoweverLittleItIsLarger) {
  std::vector<double> logits(200, 1.0);
  logits[150] = std::nextafter(1.0, 2.0);
  const QueryWeights top = Listed(Top(2, Mode::kHard), RowsOf(logits));
  ASSERT_THAT(PositionsOf(top), ElementsAre(150, 0));
  EXPECT_EQ(top.rows[0].weight, 1);
}

// More rows than are sorted between two checks of the cancellation, and not a multiple of it.
TEST(TaskAnswerListsTest, ManyRowsAreSorted) {
  std::vector<CountedRow> rows;
  for (std::uint64_t i = 0; i < 150'001; ++i) {
    rows.push_back({.position = i, .logit = static_cast<double>(i * 7919 % 1000) / 100});
  }
  std::mt19937_64 generator(1);
  std::shuffle(rows.begin(), rows.end(), generator);
  PlayedPass pass(TaskOf(All()));
  ASSERT_THAT(pass.Begin(), IsOk());
  pass.Find(0, rows);
  const std::vector<WeightedRow> listed = pass.MustFinish().weights.at(0).rows;
  ASSERT_THAT(listed, SizeIs(rows.size()));
  std::sort(rows.begin(), rows.end(), RanksBefore);
  for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(listed[i].position, rows[i].position);
}

}  // namespace
}  // namespace softlookup
