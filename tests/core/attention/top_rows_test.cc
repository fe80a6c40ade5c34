#include "core/attention/top_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/attention/listed_weight.h"

namespace softlookup {
namespace {

TEST(TopRowsTest, KeepsTheSameRowsInWhateverOrderTheyArrive) {
  std::vector<CountedRow> rows;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    rows.push_back({.position = i, .logit = static_cast<double>(i * 7 % 50)});  // Many ties.
  }
  std::vector<std::uint64_t> first;
  std::mt19937_64 generator(1);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(rows.begin(), rows.end(), generator);
    TopRows top(30, RankBy::kLogit);
    for (const CountedRow& row : rows) top.Add({&row, 1});
    std::vector<std::uint64_t> kept;
    for (const CountedRow& row : top.Take()) kept.push_back(row.position);
    std::sort(kept.begin(), kept.end());
    ASSERT_EQ(kept.size(), 30u);
    if (round == 0) first = kept;
    ASSERT_EQ(kept, first);
  }
  // 20 rows have logit 49, the first at 7 * 7; 10 of the 20 with 48 follow, the lowest ones.
  EXPECT_EQ(first[0], 7u);
  EXPECT_EQ(std::count_if(first.begin(), first.end(), [](auto p) { return p * 7 % 50 == 49; }), 20);
}

TEST(TopRowsTest, ByPositionItKeepsTheLowestOnes) {
  TopRows top(3, RankBy::kPosition);
  for (std::uint64_t position = 500; position-- > 0;) {
    const CountedRow row{.position = position, .logit = 1};
    top.Add({&row, 1});
  }
  std::uint64_t sum = 0;
  for (const CountedRow& row : top.Take()) sum += row.position + 100;
  EXPECT_EQ(sum, 300u + 0 + 1 + 2);
}

TEST(TopRowsTest, ByWeightItKeepsTheLowestPositionsOfLogitsThatRoundAlike) {
  for (const double logit : {0.3, -7.0, 1e6}) {
    TopRows top(3, RankBy::kWeight);
    // From the back, each with a logit that is larger by less than rounding keeps, or none.
    for (std::uint64_t position = 500; position-- > 0;) {
      const CountedRow row{.position = position,
                           .logit = RoundedLogit(logit) + 1e-16 * static_cast<double>(position)};
      EXPECT_TRUE(top.Wants(row));
      top.Add({&row, 1});
    }
    const CountedRow larger{.position = 600, .logit = RoundedLogit(logit) + 0x1p-30};
    top.Add({&larger, 1});
    EXPECT_FALSE(top.Wants({.position = 0, .logit = logit - 0x1p-30}));
    std::vector<std::uint64_t> kept;
    for (const CountedRow& row : top.Take()) kept.push_back(row.position);
    EXPECT_THAT(kept, ::testing::UnorderedElementsAre(600, 0, 1)) << logit;
  }
}

TEST(TopRowsTest, TakesNoMoreMemoryThanItSays) {
  for (const std::int64_t capacity : {1, 10, 1000}) {
    TopRows top(capacity, RankBy::kLogit);
    // Each is better than all before it, so all are wanted.
    std::vector<CountedRow> rows(20'000);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].logit = static_cast<double>(i);
    top.Add(rows);
    const std::vector<CountedRow> kept = top.Take();
    EXPECT_EQ(static_cast<std::int64_t>(kept.size()), capacity);
    EXPECT_LE(kept.capacity() * sizeof(CountedRow),
              static_cast<std::size_t>(TopRows::BytesMax(capacity)));
  }
}

TEST(TopRowsTest, DoesNotWantWhatCannotBeAmongTheFirst) {
  TopRows top(2, RankBy::kLogit);
  std::vector<CountedRow> rows(200, {.position = 0, .logit = 5});
  EXPECT_TRUE(top.Wants({.position = 0, .logit = -1}));
  top.Add(rows);
  EXPECT_FALSE(top.Wants({.position = 0, .logit = 4}));
  EXPECT_TRUE(top.Wants({.position = 9, .logit = 5}));
}

}  // namespace
}  // namespace softlookup
