#include "core/attention/block_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/attention/attend.h"
#include "core/attention/blocks_summary.h"
#include "core/parallel/fork_join_pool.h"
#include "tests/core/attention/look_answers.h"
#include "tests/core/attention/pass_tasks.h"
#include "tests/core/attention/round_with_looks.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/random.h"

namespace softlookup {
namespace {

using ::softlookup::testing::NormalFloats;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Optional;

// A query that is the key of row 3000, in block 2, and one that is that of row 9999, in block 9.
// Each block is a cluster.
class BlockLookTest : public ::testing::Test {
 protected:
  BlockLookTest() {
    for (const std::int64_t row : {3000, 9999}) {
      queries_.insert(queries_.end(), keys_.begin() + row * kLookDim,
                      keys_.begin() + (row + 1) * kLookDim);
    }
    tasks_.Add(rows_.Task(queries_, {.score = Score::kSquaredEuclidean, .temperature = 0.01}));
  }

  const std::vector<float> keys_ = KeysByCluster();
  const TestRows rows_ = RowsOfKeys(keys_);
  std::vector<float> queries_;
  PassTasks tasks_;
};

TEST_F(BlockLookTest, ReadsTheBlockOfTheQuerysCluster) {
  RoundWithLooks with(tasks_);
  ASSERT_EQ(with.looks.tile_count(), 1);
  BlockLook block_look(with.looks);
  block_look.Begin();
  block_look.Bound(0, 5, 0);
  block_look.Bound(5, with.blocks.count(), 0);
  block_look.Choose(0);
  EXPECT_THAT(with.looks[0].blocks.read, Optional(ElementsAre(2)));
  EXPECT_THAT(with.looks[0].places, ElementsAre(-1, -1, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  EXPECT_TRUE(with.looks[0].Reads(2));
  EXPECT_FALSE(with.looks[0].Reads(9));
  EXPECT_THAT(with.looks[1].blocks.read, Optional(ElementsAre(9)));
}

// Six groups of blocks. Four of them are bounded block by block, to find those nearest to the
// query.
TEST(BlockLookOfGroupsTest, AGroupThatDoesNotMatterHasOneBound) {
  const std::vector<float> keys = KeysByCluster(48);
  const TestRows rows = RowsOfKeys(keys);
  const std::vector<float> query(keys.begin() + 3000 * kLookDim, keys.begin() + 3001 * kLookDim);
  PassTasks tasks;
  tasks.Add(rows.Task(query, {.score = Score::kSquaredEuclidean, .temperature = 0.01}));
  RoundWithLooks with(tasks);
  BlockLook block_look(with.looks);
  block_look.Begin();
  EXPECT_FALSE(block_look.AnyToBound());
  block_look.Choose(0);
  const std::vector<double>& highest = block_look.highest_of(0);
  int alike = 0;
  for (auto block = highest.begin(); block != highest.end(); block += 8) {
    alike += std::equal(block, block + 7, block + 1) ? 1 : 0;
  }
  EXPECT_EQ(alike, 1);
  EXPECT_THAT(with.looks[0].blocks.read, Optional(ElementsAre(2)));
}

// A query that does not attend to all rows cannot use the balls of groups.
TEST_F(BlockLookTest, BlocksThatAreAttendedToInPartAreBoundedOneByOne) {
  PassTasks some;
  AttentionTask task =
      rows_.Task(queries_, {.score = Score::kSquaredEuclidean, .temperature = 0.01});
  task.begin = 2500;
  some.Add(task);
  RoundWithLooks with(some);
  BlockLook block_look(with.looks);
  block_look.Begin();
  ASSERT_TRUE(block_look.AnyToBound());
  block_look.Bound(0, with.blocks.count(), 0);
  block_look.Choose(0);
  const std::vector<double>& highest = block_look.highest_of(1);
  EXPECT_EQ(highest[1], -kInfiniteLogit);
  EXPECT_NE(highest[3], highest[4]);
  EXPECT_THAT(with.looks[1].blocks.read, Optional(ElementsAre(9)));
}

TEST_F(BlockLookTest, BlocksWithTheFirstRowsAreReadToo) {
  PassTasks listing;
  listing.Add(rows_.Task(queries_, {.score = Score::kSquaredEuclidean,
                                    .temperature = 0.01,
                                    .weights = WeightsMode::kTop,
                                    .top_weights = 1}));
  RoundWithLooks with(listing);
  ASSERT_EQ(with.looks.tile_count(), 1);
  BlockLook block_look(with.looks);
  block_look.Begin();
  block_look.Bound(0, with.blocks.count(), 0);
  block_look.Choose(0);
  EXPECT_THAT(with.looks[0].blocks.read, Optional(ElementsAre(0, 2)));
}

// Six groups of blocks, of which a task attends to the last five. In the pass with a task that
// attends to all, its first block is block 8.
TEST(BlockLookOfSharedPassTest, ATaskSkipsAndAnswersAsItDoesAlone) {
  const std::vector<float> keys = KeysByCluster(48);
  const TestRows rows = RowsOfKeys(keys);
  std::vector<float> queries;
  for (const std::int64_t row : {10'500, 20'700}) {
    queries.insert(queries.end(), keys.begin() + row * kLookDim,
                   keys.begin() + (row + 1) * kLookDim);
  }
  ForkJoinPool pool(2, 1);
  const ResolvedOptions soft{.score = Score::kSquaredEuclidean, .temperature = 0.01};
  ResolvedOptions hard = soft, best = soft, listed = soft;
  hard.mode = Mode::kHard;
  best.top_k = 5;
  listed.weights = WeightsMode::kTop;
  listed.top_weights = 3;
  for (const ResolvedOptions& options : {soft, hard, best, listed}) {
    const AttentionTask all = rows.Task(queries, options);
    AttentionTask last = all;
    last.blocks = last.blocks.subspan(8);
    last.begin = 8 * 1024;
    EXPECT_EQ(SummaryOf(last.blocks).groups.size(), 5);
    EXPECT_GE(ReadsOf(last).skipped_blocks, 37) << "of 40";
    const AttentionAnswer alone = MustAttend(last);
    const std::vector<double> expected = rows.Reference(last).values;
    ASSERT_EQ(alone.values.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(alone.values[i], expected[i], 1e-5 * kValueMax);
    }
    const CancelToken cancel;
    std::vector<SharedTask> shared = {{.task = &all, .cancel = &cancel},
                                      {.task = &last, .cancel = &cancel}};
    AttendTogether(absl::MakeSpan(shared), pool);
    const AttentionAnswer& together = *shared[1].answer;
    EXPECT_EQ(together.values, alone.values);
    for (std::size_t q = 0; q < 2; ++q) {
      EXPECT_EQ(together.stats[q].error_bound, alone.stats[q].error_bound);
      EXPECT_EQ(together.stats[q].summed_rows, alone.stats[q].summed_rows);
    }
  }
}

// Keys drawn around the origin, in no order: all balls are wide and have their centres near to it.
TEST(BlockLookOfRandomKeysTest, BlocksThatCannotBeSkippedAreNotBounded) {
  const TestRows rows(12 * 1024, kLookDim, 1, 7);
  const std::vector<float> query = NormalFloats(kLookDim, 8);
  for (const double temperature : {0.2, 0.001}) {
    PassTasks tasks;
    tasks.Add(rows.Task(query, {.score = Score::kScaledDot, .temperature = temperature}));
    RoundWithLooks with(tasks);
    ASSERT_EQ(with.looks.tile_count(), 1) << temperature;
    EXPECT_EQ(with.looks[0].may_skip_blocks, temperature < 0.1);
    BlockLook block_look(with.looks);
    block_look.Begin();
    block_look.Bound(0, with.blocks.count(), 0);
    block_look.Choose(0);
    EXPECT_EQ(block_look.highest_of(0)[0] == kInfiniteLogit, temperature > 0.1);
  }
}

TEST_F(BlockLookTest, ACancelledTaskBoundsNothing) {
  RoundWithLooks with(tasks_);
  ASSERT_EQ(with.looks.tile_count(), 1);
  tasks_.cancel(0).Cancel();
  BlockLook block_look(with.looks);
  block_look.Begin();
  block_look.Bound(0, with.blocks.count(), 0);
  block_look.Choose(0);
  EXPECT_THAT(block_look.highest_of(0), Each(kInfiniteLogit));
  EXPECT_FALSE(with.looks[0].skips());
}

}  // namespace
}  // namespace softlookup
