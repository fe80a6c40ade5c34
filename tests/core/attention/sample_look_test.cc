#include "core/attention/sample_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/block_look.h"
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
using ::testing::IsEmpty;

// Rows in no order, so that no block is skipped, in 18 blocks. The query is the key of a row in
// block 16.
class SampleLookTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kBlocks = 18;
  static constexpr std::int64_t kRow = 16 * kernels::kBlockRowsMax + 100;
  static constexpr std::int64_t kPanel = 100 / kernels::kPanelRows;
  static constexpr double kTemperature = 0.05;

  // Begins the looks of the tasks, which must be in one tile, and their sample.
  void Begin(std::size_t look_count) {
    with_.emplace(tasks_);
    ASSERT_EQ(with_->looks.all().size(), look_count);
    ASSERT_EQ(with_->looks.tile_count(), 1);
    sample_look_.emplace(with_->looks);
    sample_look_->Begin();
  }
  void Run() {
    sample_look_->LookAt(0, std::ssize(sample_look_->blocks()), 0, 1);
    sample_look_->Choose(0);
  }
  RoundLooks& looks() { return with_->looks; }
  // Returns the logit of row kRow for the query.
  double BestLogit() const {
    double product = 0;
    for (std::int64_t i = 0; i < kLookDim; ++i) {
      product += static_cast<double>(query_[static_cast<std::size_t>(i)]) *
                 query_[static_cast<std::size_t>(i)];
    }
    return product / kTemperature;
  }

  const std::vector<float> keys_ = NormalFloats(kBlocks * kernels::kBlockRowsMax * kLookDim, 1);
  const TestRows rows_ = RowsOfKeys(keys_);
  const std::vector<float> query_{keys_.begin() + kRow * kLookDim,
                                  keys_.begin() + (kRow + 1) * kLookDim};
  const ResolvedOptions options_{.score = Score::kDot, .temperature = kTemperature};
  PassTasks tasks_;
  std::optional<RoundWithLooks> with_;
  std::optional<SampleLook> sample_look_;
};

TEST_F(SampleLookTest, TheSampleIsEverySixteenthBlockOfTheStore) {
  AttentionTask task = rows_.Task(query_, options_);
  task.blocks = task.blocks.subspan(1);
  task.begin = kernels::kBlockRowsMax;
  tasks_.Add(task);
  Begin(1);
  EXPECT_THAT(sample_look_->blocks(), ElementsAre(15)) << "the first block is not in the pass";
  tasks_.Add(rows_.Task(query_, options_));
  Begin(2);
  EXPECT_THAT(sample_look_->blocks(), ElementsAre(0, 16));
}

TEST_F(SampleLookTest, TheReferenceIsTheLargestBoundOfTheSample) {
  tasks_.Add(rows_.Task(query_, options_));
  Begin(1);
  Run();
  EXPECT_TRUE(looks()[0].continues);
  const double reference = looks().tile(0).queries.reference(0);
  EXPECT_GE(reference, BestLogit() * (1 - 1e-6));
  EXPECT_LE(reference, looks()[0].range.highest * (1 + 1e-6));
}

TEST_F(SampleLookTest, CopiesTheBoundsToTheBlocksOfTheSample) {
  constexpr std::int64_t kPanels = kernels::kBlockRowsMax / kernels::kPanelRows;
  tasks_.Add(rows_.Task(query_, options_));
  Begin(1);
  Run();
  ASSERT_EQ(with_->blocks.panels_max(), kPanels);
  std::vector<float> bounds(kBlocks * kPanels, 7.25f);
  sample_look_->CopyTo(0, absl::MakeSpan(bounds));
  for (std::int64_t block = 0; block < kBlocks; ++block) {
    const std::vector<float> of_block(bounds.begin() + block * kPanels,
                                      bounds.begin() + (block + 1) * kPanels);
    if (block == 0 || block == 16) {
      EXPECT_EQ(std::ranges::count(of_block, 7.25f), 0) << block;
    } else {
      EXPECT_THAT(of_block, Each(7.25f)) << block;
    }
  }
  EXPECT_GE(bounds[16 * kPanels + kPanel], BestLogit() * (1 - 1e-6));
}

TEST_F(SampleLookTest, ALookAtRowsThatAllMatterEnds) {
  // A tenth of a key: its logits are so much alike that all rows matter.
  std::vector<float> queries = query_;
  for (std::int64_t i = 0; i < kLookDim; ++i) {
    queries.push_back(keys_[static_cast<std::size_t>(i)] / 10);
  }
  tasks_.Add(rows_.Task(queries, {.temperature = kTemperature}));
  Begin(2);
  Run();
  EXPECT_TRUE(looks()[0].continues);
  EXPECT_FALSE(looks()[1].continues);
}

TEST_F(SampleLookTest, DecidesNothingForACancelledTask) {
  tasks_.Add(rows_.Task(query_, options_));
  Begin(1);
  tasks_.cancel(0).Cancel();
  const float reference = looks().tile(0).queries.reference(0);
  Run();
  EXPECT_TRUE(looks()[0].continues);
  EXPECT_EQ(looks().tile(0).queries.reference(0), reference);
}

// Each block is a cluster, so a look skips the blocks of all clusters but its own.
TEST(SampleLookOfClustersTest, ALookThatSkipsBlocksHasNoSample) {
  const std::vector<float> keys = KeysByCluster();
  const TestRows rows = RowsOfKeys(keys);
  const std::vector<float> query(keys.begin() + 3000 * kLookDim, keys.begin() + 3001 * kLookDim);
  PassTasks tasks;
  tasks.Add(rows.Task(query, {.score = Score::kSquaredEuclidean, .temperature = 0.01}));
  RoundWithLooks with(tasks);
  ASSERT_EQ(with.looks.tile_count(), 1);
  BlockLook block_look(with.looks);
  block_look.Begin();
  block_look.Bound(0, with.blocks.count(), 0);
  block_look.Choose(0);
  ASSERT_TRUE(with.looks[0].skips());
  const float reference = with.looks.tile(0).queries.reference(0);
  SampleLook sample_look(with.looks);
  sample_look.Begin();
  EXPECT_THAT(sample_look.blocks(), IsEmpty());
  sample_look.Choose(0);
  EXPECT_TRUE(with.looks[0].continues);
  EXPECT_EQ(with.looks.tile(0).queries.reference(0), reference) << "BlockLook has set it";
}

}  // namespace
}  // namespace softlookup
