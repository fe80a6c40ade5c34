#include "core/attention/panel_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/attention/block_look.h"
#include "core/attention/sample_look.h"
#include "tests/core/attention/look_answers.h"
#include "tests/core/attention/pass_tasks.h"
#include "tests/core/attention/round_with_looks.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/random.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::NormalFloats;

// A query that is the key of row 3000, in block 2. Each of the 12 blocks is a cluster.
class PanelLookTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kBlock = 2;
  static constexpr std::int64_t kPanel =
      (3000 - kBlock * kernels::kBlockRowsMax) / kernels::kPanelRows;

  // Takes a look at the rows for a task with these options.
  void LookFor(const ResolvedOptions& options) {
    tasks_.Add(rows_.Task(query_, options));
    with_.emplace(tasks_);
    ASSERT_EQ(with_->looks.tile_count(), 1);
    BlockLook block_look(with_->looks);
    block_look.Begin();
    block_look.Bound(0, with_->blocks.count(), 0);
    block_look.Choose(0);
    sample_look_.emplace(with_->looks);
    sample_look_->Begin();
    ASSERT_THAT(sample_look_->blocks(), IsEmpty()) << "a look that skips blocks has no sample";
    panel_look_.emplace(with_->looks, *sample_look_);
    panel_look_->Begin();
    panel_look_->LookAt(0, std::ssize(panel_look_->blocks()), 0, 1);
    panel_look_->Choose(0);
  }
  const Look& look() const { return with_->looks.all()[0]; }

  const std::vector<float> keys_ = KeysByCluster();
  const TestRows rows_ = RowsOfKeys(keys_);
  const std::vector<float> query_{keys_.begin() + 3000 * kLookDim, keys_.begin() + 3001 * kLookDim};
  PassTasks tasks_;
  std::optional<RoundWithLooks> with_;
  std::optional<SampleLook> sample_look_;
  std::optional<PanelLook> panel_look_;
};

TEST_F(PanelLookTest, KeepsThePanelOfTheBestRowAndReadsNoSkippedBlock) {
  LookFor({.score = Score::kSquaredEuclidean, .temperature = 0.01});
  EXPECT_THAT(panel_look_->blocks(), ElementsAre(kBlock));
  EXPECT_TRUE(look().continues);
  EXPECT_TRUE(look().candidates.kept_blocks.Has(kBlock));
  EXPECT_FALSE(look().candidates.kept_blocks.Has(kBlock + 1));
  EXPECT_GE(look().candidates.bounds_of(kBlock)[kPanel], look().candidates.cut);
}

TEST_F(PanelLookTest, OfRankedRowsKeepsThePanelOfTheBest) {
  LookFor({.score = Score::kSquaredEuclidean, .temperature = 0.01, .mode = Mode::kHard});
  EXPECT_TRUE(look().continues);
  EXPECT_TRUE(look().candidates.kept_blocks.Has(kBlock));
  EXPECT_GE(look().candidates.bounds_of(kBlock)[kPanel], look().candidates.cut);
  EXPECT_EQ(look().candidates.ln_left_out, -kInfiniteLogit) << "ranks do not depend on weights";
}

TEST_F(PanelLookTest, ATaskThatIsCancelledKeepsNoBlock) {
  tasks_.Add(rows_.Task(query_, {.score = Score::kSquaredEuclidean, .temperature = 0.01}));
  with_.emplace(tasks_);
  ASSERT_EQ(with_->looks.tile_count(), 1);
  tasks_.cancel(0).Cancel();
  sample_look_.emplace(with_->looks);
  sample_look_->Begin();
  panel_look_.emplace(with_->looks, *sample_look_);
  panel_look_->Begin();
  EXPECT_EQ(std::ssize(panel_look_->blocks()), with_->blocks.count());
  panel_look_->LookAt(0, with_->blocks.count(), 0, 1);
  panel_look_->Choose(0);
  for (std::int64_t block = 0; block < with_->blocks.count(); ++block) {
    EXPECT_FALSE(look().candidates.kept_blocks.Has(block)) << block;
  }
}

// Rows in no order, so that no block is skipped, in 18 blocks. Blocks 0 and 16 are the sample.
class PanelLookAfterSampleTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRow = 16 * kernels::kBlockRowsMax + 100;
  static constexpr std::int64_t kPanel = 100 / kernels::kPanelRows;

  // Looks at the rows for all queries, which must have looks in one tile.
  void LookFor(const ResolvedOptions& options, std::size_t look_count) {
    tasks_.Add(rows_.Task(queries_, options));
    with_.emplace(tasks_);
    ASSERT_EQ(with_->looks.all().size(), look_count);
    ASSERT_EQ(with_->looks.tile_count(), 1);
    sample_look_.emplace(with_->looks);
    sample_look_->Begin();
    ASSERT_THAT(sample_look_->blocks(), ElementsAre(0, 16));
    sample_look_->LookAt(0, 2, 0, 1);
    sample_look_->Choose(0);
    panel_look_.emplace(with_->looks, *sample_look_);
    panel_look_->Begin();
    panel_look_->LookAt(0, with_->blocks.count(), 0, 1);
    panel_look_->Choose(0);
  }
  const Look& look(std::size_t index) const { return with_->looks.all()[index]; }

  const std::vector<float> keys_ = NormalFloats(18 * kernels::kBlockRowsMax * kLookDim, 1);
  const TestRows rows_ = RowsOfKeys(keys_);
  std::vector<float> queries_{keys_.begin() + kRow * kLookDim,
                              keys_.begin() + (kRow + 1) * kLookDim};
  PassTasks tasks_;
  std::optional<RoundWithLooks> with_;
  std::optional<SampleLook> sample_look_;
  std::optional<PanelLook> panel_look_;
};

TEST_F(PanelLookAfterSampleTest, RanksTakeTheSamplesBoundsToTheirBlocks) {
  LookFor({.score = Score::kSquaredEuclidean, .mode = Mode::kHard}, 1);
  ASSERT_TRUE(look(0).continues);
  ASSERT_FALSE(look(0).skips());
  EXPECT_TRUE(look(0).candidates.kept_blocks.Has(16));
  EXPECT_GE(look(0).candidates.bounds_of(16)[kPanel], look(0).candidates.cut);
}

TEST_F(PanelLookAfterSampleTest, ALookThatEndsAtTheSampleLeavesTheOthersBounds) {
  // A tenth of a key: its logits are so much alike that all rows matter.
  for (std::int64_t i = 0; i < kLookDim; ++i) queries_.push_back(keys_[i] / 10);
  LookFor({.temperature = 0.05}, 2);
  ASSERT_TRUE(look(0).continues);
  ASSERT_FALSE(look(1).continues);
  const Candidates& candidates = look(0).candidates;
  EXPECT_TRUE(candidates.kept_blocks.Has(16));
  std::int64_t kept = 0;
  for (std::int64_t block = 0; block < with_->blocks.count(); ++block) {
    for (std::int64_t panel = 0; panel < candidates.block_stride; ++panel) {
      kept += candidates.bounds_of(block)[panel] >= candidates.cut ? 1 : 0;
    }
  }
  EXPECT_LT(kept, 100) << "of 1152 panels";
}

}  // namespace
}  // namespace softlookup
