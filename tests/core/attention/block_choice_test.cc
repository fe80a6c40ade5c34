// Which blocks a look reads, of blocks that have balls but no rows.
#include "core/attention/block_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Blocks of keys of one component, asked with the query 1 for the highest products.
class BlockChoiceTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 1024, kPanels = kRows / kernels::kPanelRows;

  BlockChoiceTest() {
    plan_.options = {.score = Score::kDot, .temperature = 1, .top_k = 1};
    plan_.key_dims = {.begin = 0, .count = 1};
    query_ = {.components = &kOne, .magnitude = 1, .norm = 1, .end = 1'000'000'000};
  }

  // A block whose products are in [product - radius, product + radius].
  PositionedBlock& Add(float product, double radius) {
    centres_.push_back({product});
    const kernels::KeyBall ball{
        .centre = centres_.back().data(), .centre_norm = std::abs(product), .radius = radius};
    sketches_.push_back({.panel_count = kPanels, .key_dim = 1, .balls = {ball, ball}});
    blocks_.push_back({.number = std::ssize(blocks_),
                       .first_position = blocks_.size() * kRows,
                       .position_count = kRows,
                       .sketch = &sketches_.back()});
    blocks_.back().view.row_count = kRows;
    blocks_.back().view.full_panel_count = kPanels;
    return blocks_.back();
  }

  // All panels of a block get the same bound: its product. Some row of each is as high.
  BlockChoice Choose(std::int64_t ranks = 1) { return Choose(LookGoal{.ranks = ranks}); }
  BlockChoice Choose(const LookGoal& goal) {
    const std::vector<const PositionedBlock*> blocks = Blocks();
    std::vector<double> highest(blocks.size());
    BoundBlocks(plan_, query_, blocks, highest.data());
    const BlockChoice choice = Choose(goal, highest);
    if (!MaySkip(goal)) {
      EXPECT_FALSE(choice.read.has_value());
      EXPECT_THAT(tried_, IsEmpty());
    }
    const std::vector<std::int64_t> tried = tried_;
    EXPECT_EQ(ChooseByGroups(goal).read, choice.read);
    tried_ = tried;
    return choice;
  }
  // As Choose(goal), but begins with bounds of groups of blocks.
  BlockChoice ChooseByGroups(const LookGoal& goal) {
    const std::vector<const PositionedBlock*> blocks = Blocks();
    std::vector<double> highest(blocks.size());
    BoundBlocks(plan_, query_, blocks, highest.data());
    const std::vector<double> of_blocks = highest;
    constexpr auto kBlocks = static_cast<std::size_t>(kernels::kBallGroupBlocks);
    std::deque<std::array<float, 2 * kernels::CentreFloats(1)>> centres;
    std::deque<kernels::KeyBalls> balls_of_groups;
    std::vector<const kernels::KeyBalls*> groups;
    for (std::size_t end = kBlocks; end <= blocks.size(); end += kBlocks) {
      std::vector<kernels::KeyBall> balls;
      for (std::size_t b = end - kBlocks; b < end; ++b) {
        if (std::abs(of_blocks[b]) < kInfiniteLogit) balls.push_back(blocks[b]->sketch->balls[0]);
      }
      groups.push_back(nullptr);
      if (balls.size() < kBlocks) continue;
      groups.back() = &balls_of_groups.emplace_back(
          kernels::MakeGroupBalls(balls, 1, centres.emplace_back().data()));
    }
    BoundGroups(plan_, query_, groups, highest.data());
    refined_.clear();
    const auto refine = [&](double cut) {
      const std::size_t refined_before = refined_.size();
      for (std::size_t b = 0; b < groups.size() * kBlocks; ++b) {
        if (highest[b] == of_blocks[b] || highest[b] < cut) continue;
        EXPECT_GE(highest[b], of_blocks[b] - 1e-5) << "block " << b;
        highest[b] = of_blocks[b];
        refined_.push_back(static_cast<std::int64_t>(b));
      }
      return refined_.size() > refined_before;
    };
    return Choose(goal, highest, refine);
  }
  // `highest` are the bounds of the blocks.
  BlockChoice Choose(
      const LookGoal& goal, const std::vector<double>& highest,
      absl::FunctionRef<bool(double)> refine = [](double /*cut*/) { return false; }) {
    const std::vector<const PositionedBlock*> blocks = Blocks();
    std::vector<float> bounds;
    tried_.clear();
    return ChooseBlocks(plan_, query_, LogitBounds(), blocks, highest, RowCount(), goal, refine,
                        [&](const PositionedBlock& block) -> absl::Span<const float> {
                          tried_.push_back(block.number);
                          bounds.assign(kPanels, *block.sketch->balls[0].centre);
                          return bounds;
                        });
  }
  bool MaySkip(const LookGoal& goal) const {
    BallsRange balls;
    for (const PositionedBlock& block : blocks_) {
      if (block.sketch != nullptr && block.sketch->has_balls()) balls.Add(block.sketch->balls);
    }
    return MaySkipBlocks(plan_, query_, balls, goal, RowCount());
  }
  std::int64_t RowCount() const {
    std::int64_t count = 0;
    for (const PositionedBlock& block : blocks_) count += block.view.row_count;
    return count;
  }

  std::vector<const PositionedBlock*> Blocks() const {
    std::vector<const PositionedBlock*> blocks;
    for (const PositionedBlock& block : blocks_) {
      blocks.push_back(block.view.row_count == 0 ? nullptr : &block);
    }
    return blocks;
  }

  static constexpr float kOne = 1;
  ScanPlan plan_;
  HeadQuery query_;
  std::deque<std::array<float, kernels::CentreFloats(1)>> centres_;
  std::deque<kernels::SketchView> sketches_;
  std::deque<PositionedBlock> blocks_;
  std::vector<std::int64_t> tried_;    // Blocks whose panels were asked for.
  std::vector<std::int64_t> refined_;  // Blocks whose bound was that of their group before.
};

TEST_F(BlockChoiceTest, ReadsTheBlocksThatMayReachTheBest) {
  Add(1, 1);
  Add(10, 0.5);
  Add(2, 1);
  Add(9.5, 0.5);  // May tie.
  Add(9, 0.5);
  Add(3, 1);
  EXPECT_THAT(Choose().read, ::testing::Optional(ElementsAre(1, 3)));
  EXPECT_THAT(tried_, ElementsAre(1));
}

TEST_F(BlockChoiceTest, ReadsAllIfFewCanBeSkipped) {
  Add(10, 0.5);
  Add(9, 2);
  Add(8, 3);
  Add(1, 1);
  EXPECT_EQ(Choose().read, std::nullopt);
}

// Where rows came in no order, all balls are alike. To find that out costs no look at a block.
TEST_F(BlockChoiceTest, LooksAtNoBlockInVain) {
  for (int i = 0; i < 100; ++i) Add(1 + 0.01f * static_cast<float>(i % 7), 5);
  EXPECT_EQ(Choose().read, std::nullopt);
  EXPECT_THAT(tried_, IsEmpty());
}

// The balls' ranges alone show whether blocks may be skipped.
TEST_F(BlockChoiceTest, ItIsKnownBeforehandThatAlikeBallsSkipNoBlock) {
  for (int block = 0; block < 20; ++block) Add(0.1f * static_cast<float>(block % 3), 3);
  const LookGoal weighs_all{.weighs_all = true};
  EXPECT_FALSE(MaySkip(weighs_all));
  EXPECT_FALSE(Choose(weighs_all).read.has_value());
  EXPECT_TRUE(MaySkip({.ranks = LookGoal::kAllRanks}));
  // A product of 100 is above all others by more than the margin.
  Add(100, 1);
  EXPECT_TRUE(MaySkip(weighs_all));
  plan_.options.score = Score::kCosine;
  EXPECT_TRUE(MaySkip(weighs_all)) << "ranges bound products alone";
}

// The bounds differ by less than what the log-sum-exp of all rows can be above their logits.
TEST_F(BlockChoiceTest, LooksAtNoBlockInVainWhereAllRowsAreWeighed) {
  for (int i = 0; i < 100; ++i) Add(1 + static_cast<float>(i % 7), 1);
  EXPECT_EQ(Choose(LookGoal{.weighs_all = true}).read, std::nullopt);
  EXPECT_THAT(tried_, IsEmpty());
}

// The bounds alone show that, so the nearest blocks are not looked for by their balls. Here the
// balls say that one block is far better than its bound.
TEST_F(BlockChoiceTest, LooksAtNoBallInVainWhereAllRowsAreWeighed) {
  for (int i = 0; i < 100; ++i) Add(i == 4 ? 50 : 1, 1);
  // Were the block tried all the same, this panel would be read.
  const std::array<float, kernels::kPanelRows> keys = {};
  blocks_[4].view.shape = {.key_dim = 1};
  blocks_[4].view.full_panels = reinterpret_cast<const std::byte*>(keys.data());
  EXPECT_EQ(Choose(LookGoal{.weighs_all = true}, std::vector<double>(100, 2)).read, std::nullopt);
  EXPECT_THAT(tried_, IsEmpty());
}

TEST_F(BlockChoiceTest, LooksAtNoBlockInVainWhereMostHaveNoBalls) {
  for (int i = 0; i < 10; ++i) Add(i == 9 ? 50 : 1, 1);
  for (int i = 0; i < 6; ++i) blocks_[static_cast<std::size_t>(i)].sketch = nullptr;
  EXPECT_EQ(Choose().read, std::nullopt);
  EXPECT_THAT(tried_, IsEmpty());
}

// Nothing is known of them, though min_score alone decides and no block has to be tried.
TEST_F(BlockChoiceTest, AllAreReadForAllRanksWhereMostHaveNoBalls) {
  for (int i = 0; i < 10; ++i) Add(1, 1);
  for (PositionedBlock& block : blocks_) block.sketch = nullptr;
  const LookGoal goal{.ranks = LookGoal::kAllRanks, .threshold = {20, 20}};
  EXPECT_EQ(Choose(goal).read, std::nullopt);
  blocks_[3].sketch = &sketches_[3];
  EXPECT_EQ(Choose(goal).read, std::nullopt) << "nine blocks have to be read";
}

TEST_F(BlockChoiceTest, AWideBallWithLowRowsDoesNotHideTheOthers) {
  // This ball looks best.
  Add(2, 100);
  for (int i = 1; i < 400; ++i) Add(i == 77 ? 50 : 1, 1);
  EXPECT_THAT(Choose().read, ::testing::Optional(ElementsAre(0, 77)));
  EXPECT_THAT(tried_, ElementsAre(0, 77));
}

TEST_F(BlockChoiceTest, TriesAtMostFourBlocks) {
  for (int i = 0; i < 1000; ++i) Add(i < 10 ? 0 : 1, i < 10 ? 100 : 1);
  EXPECT_EQ(Choose().read, std::nullopt);
  EXPECT_THAT(tried_, ElementsAre(0, 1, 2, 3));
}

TEST_F(BlockChoiceTest, MoreRanksThanPanelsTakeMoreBlocks) {
  for (int i = 0; i < 300; ++i) Add(i < 2 ? 50 : 1, 1);
  EXPECT_THAT(Choose(kPanels).read, ::testing::Optional(ElementsAre(0, 1)));
  EXPECT_THAT(Choose(2 * kPanels).read, ::testing::Optional(ElementsAre(0, 1)));
  EXPECT_THAT(Choose(2 * kPanels + 1).read, std::nullopt);
}

TEST_F(BlockChoiceTest, BlocksWithoutSketchesAreRead) {
  for (int i = 0; i < 10; ++i) Add(i == 4 ? 50 : 1, 1);
  blocks_[7].sketch = nullptr;
  EXPECT_THAT(Choose().read, ::testing::Optional(ElementsAre(4, 7)));
  EXPECT_THAT(tried_, ElementsAre(4));
}

TEST_F(BlockChoiceTest, BlocksWithoutRowsAboveMinScoreAreSkipped) {
  for (int i = 0; i < 10; ++i) Add(static_cast<float>(i), 0.5);
  const LogitThreshold threshold{.none_below = 6.9, .all_from = 7};
  const LookGoal all{.ranks = LookGoal::kAllRanks, .threshold = threshold};
  EXPECT_THAT(Choose(all).read, ::testing::Optional(ElementsAre(7, 8, 9)));
  EXPECT_THAT(tried_, IsEmpty()) << "no rank is asked for";
  const LookGoal best{.ranks = 1, .threshold = threshold};
  EXPECT_THAT(Choose(best).read, ::testing::Optional(ElementsAre(9)));
}

// Two of ten panels of the best block's bound have a row above min_score, as far as is known.
TEST_F(BlockChoiceTest, RanksBelowMinScoreProveNothing) {
  for (int i = 0; i < 10; ++i) Add(static_cast<float>(i), 0.5);
  const LookGoal goal{.ranks = 1, .threshold = {.none_below = 8.2, .all_from = 9.1}};
  EXPECT_THAT(Choose(goal).read, ::testing::Optional(ElementsAre(8, 9)));
}

TEST_F(BlockChoiceTest, AllRowsAboveMinScoreMayBeNone) {
  for (int i = 0; i < 10; ++i) Add(static_cast<float>(i), 0.5);
  EXPECT_THAT(Choose({.ranks = LookGoal::kAllRanks, .threshold = {20, 20}}).read,
              ::testing::Optional(IsEmpty()));
}

// Of 20 groups, one reaches the best block. Three more have the next largest bounds.
TEST_F(BlockChoiceTest, OnlyGroupsThatMatterAreBoundedBlockByBlock) {
  for (int i = 0; i < 160; ++i) Add(i == 42 ? 50 : static_cast<float>(i) / 10, 1);
  EXPECT_THAT(ChooseByGroups(LookGoal{.ranks = 1}).read, ::testing::Optional(ElementsAre(42)));
  EXPECT_THAT(refined_, SizeIs(32));
}

// The balls of the first two groups look best, and would take all places among the nearest blocks.
TEST_F(BlockChoiceTest, WideGroupsDoNotHideTheNearestBlock) {
  for (int i = 0; i < 40; ++i) Add(i == 20 ? 90 : 0, i == 0 || i == 8 ? 100 : 1);
  EXPECT_THAT(Choose().read, ::testing::Optional(ElementsAre(0, 8, 20)));
}

// They are in the pass for other queries, and must not change what this one reads.
TEST_F(BlockChoiceTest, BlocksWithoutRowsOfTheQueryDoNotCount) {
  for (int i = 0; i < 40; ++i) Add(i < 3 ? 50 : 1, 1);
  query_.end = 5 * kRows;
  EXPECT_EQ(Choose().read, std::nullopt) << "three of the query's five blocks";
}

TEST_F(BlockChoiceTest, BlocksWithoutRowsOfTheQueryAreNotRead) {
  for (int i = 0; i < 10; ++i) Add(i == 4 || i == 9 ? 50 : 1, 1);
  blocks_[0].sketch = nullptr;
  blocks_[4].view.row_count = 0;
  blocks_[4].view.full_panel_count = 0;
  query_.begin = kRows;
  EXPECT_THAT(Choose().read, ::testing::Optional(ElementsAre(9)));
}

TEST_F(BlockChoiceTest, ABlockWhoseRowsAreAllFilteredOutIsNeitherTriedNorRead) {
  for (int i = 0; i < 10; ++i) Add(i == 4 ? 50 : i == 5 ? 90 : 1, 1);
  const std::array<std::uint64_t, kRows / 64> none = {};
  blocks_[5].row_mask = none.data();
  EXPECT_THAT(Choose().read, ::testing::Optional(ElementsAre(4)));
  EXPECT_THAT(tried_, ElementsAre(4));
}

TEST_F(BlockChoiceTest, BlocksWithoutBallsAreRead) {
  for (int i = 0; i < 10; ++i) Add(i == 4 ? 50 : 1, 1);
  sketches_[7].balls = {};
  EXPECT_THAT(Choose().read, ::testing::Optional(ElementsAre(4, 7)));
}

// The bounds of a block's panels hold for rows that the query does not attend to.
TEST_F(BlockChoiceTest, ABlockThatIsAttendedToInPartProvesNothing) {
  for (int i = 0; i < 10; ++i) Add(i == 4 ? 50 : 1, 1);
  query_.begin = 4 * kRows + 1;
  EXPECT_EQ(Choose().read, std::nullopt);
  EXPECT_THAT(tried_, SizeIs(::testing::Le(1)));
}

}  // namespace
}  // namespace softlookup
