#include "core/attention/round_looks.h"

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
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RoundLooksTest, KnowsTheBlocksOfALooksTask) {
  const TestRows rows = RowsOfKeys(NormalFloats(6 * kernels::kBlockRowsMax * kLookDim, 1));
  const std::vector<float> query = NormalFloats(kLookDim, 3);
  PassTasks tasks;
  AttentionTask last = rows.Task(query, {.temperature = 0.01});
  last.blocks = last.blocks.subspan(1);
  last.begin = kernels::kBlockRowsMax;
  tasks.Add(last);
  tasks.Add(rows.Task(query, {.temperature = 0.02}));
  RoundWithLooks with(tasks);
  ASSERT_EQ(with.looks.all().size(), 2u);
  EXPECT_EQ(with.looks.BlockOf(with.looks[0], 0), nullptr);
  EXPECT_EQ(with.looks.BlocksOf(with.looks[0], 1, 6).front()->number, 1);
  EXPECT_EQ(with.looks.BlocksOf(with.looks[1], 0, 6).size(), 6u);
  EXPECT_TRUE(with.looks.TaskContinues(with.looks[1]));
  tasks.cancel(1).Cancel();
  EXPECT_FALSE(with.looks.TaskContinues(with.looks[1]));
  EXPECT_TRUE(with.looks.TaskContinues(with.looks[0]));
}

TEST(RoundLooksTest, ATileContinuesAsLongAsALookOfATaskThatIsNotCancelledDoes) {
  const TestRows rows = RowsOfKeys(NormalFloats(kLookRows * kLookDim, 1));
  const std::vector<float> two = NormalFloats(2 * kLookDim, 3);
  PassTasks tasks;
  tasks.Add(rows.Task(two, {.temperature = 0.01}));
  tasks.Add(rows.Task(two, {.temperature = 0.02}));
  RoundWithLooks with(tasks);
  RoundLooks& looks = with.looks;
  ASSERT_EQ(looks.tile_count(), 2);
  EXPECT_THAT(looks.ContinuingTiles(0, 2), ElementsAre(&looks.tile(0), &looks.tile(1)));
  EXPECT_THAT(looks.ContinuingTiles(1, 2), ElementsAre(&looks.tile(1)));
  looks[0].continues = false;
  EXPECT_THAT(looks.ContinuingTiles(0, 1), ElementsAre(&looks.tile(0)));
  looks[1].continues = false;
  EXPECT_THAT(looks.ContinuingTiles(0, 2), ElementsAre(&looks.tile(1)));
  tasks.cancel(1).Cancel();
  EXPECT_THAT(looks.ContinuingTiles(0, 2), IsEmpty());
}

TEST(RoundLooksTest, ASecondLookPaysIfFewPanelsRemainOrFewNeedFloat64) {
  std::vector<float> masses(100);
  for (std::size_t i = 0; i < masses.size(); ++i) masses[i] = static_cast<float>(i);
  const auto pays = [&](const Look& look, std::int64_t kept, float fine_cut) {
    return SecondLookPays(look, {.fine_cut = fine_cut, .kept = kept}, masses, 100);
  };
  const Look look{.goal = {.weighs_all = true, .sums_values = true}};
  EXPECT_TRUE(pays(look, 50, 0));
  EXPECT_FALSE(pays(look, 51, 99)) << "a scan of all rows takes float32";
  Look in_float64 = look;
  in_float64.needs_float64 = true;
  EXPECT_FALSE(pays(in_float64, 51, 99)) << "no panel may be scored in float32";
  in_float64.coarse_part = 0.1;
  EXPECT_TRUE(pays(in_float64, 51, 75)) << "25 panels in float64";
  EXPECT_FALSE(pays(in_float64, 51, 74)) << "26 panels in float64";
}

TEST(RoundLooksDeathTest, TilesFollowEachOther) {
  const TestRows rows = RowsOfKeys(NormalFloats(kLookRows * kLookDim, 1));
  const std::vector<float> query = NormalFloats(kLookDim, 3);
  PassTasks tasks;
  tasks.Add(rows.Task(query, {.temperature = 0.01}));
  RoundWithLooks with(tasks);
  EXPECT_DEATH(with.looks.AddTile(0, 1), "looks from 0 to 1 of 1");
  EXPECT_DEATH(with.looks.AddTile(1, 2), "looks from 1 to 2 of 1");
}

}  // namespace
}  // namespace softlookup
