#include "core/attention/block_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

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
