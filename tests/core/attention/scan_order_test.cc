#include "core/attention/scan_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/kernels/sum_values.h"
#include "tests/core/attention/pass_tasks.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/random.h"

namespace softlookup {
namespace {

using ::softlookup::testing::NormalFloats;

MATCHER_P(IsPart, expected, "") {
  return arg.first == expected.first && arg.bytes == expected.bytes &&
         arg.panel_bytes == expected.panel_bytes && arg.panel_count == expected.panel_count;
}
MATCHER(IsNothing, "") { return arg.panel_count == 0; }

// Rounds over the rows of three blocks.
class ScanOrderTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kBlocks = 3;
  static constexpr std::int64_t kPanels = kernels::kBlockRowsMax / kernels::kPanelRows;
  static constexpr BlockRange kAllBlocks{.begin = 0, .end = kBlocks, .ends_group = true};

  // Begins a round of query_count queries.
  void Begin(std::int64_t query_count, Mode mode = Mode::kSoft) {
    queries_ = NormalFloats(query_count * kPassKeyDim, 2);
    AttentionTask task = TaskOver(rows_, queries_, 0, kBlocks * kernels::kBlockRowsMax);
    task.options.mode = mode;
    tasks_.Add(task);
    blocks_.emplace(tasks_.all());
    HeadQueryOrder order(tasks_.all());
    while (const std::optional<HeadQueryRef> next = order.Next()) round_.refs.push_back(*next);
    round_.sums_stride = kernels::PaddedValueDim(kPassValueDim);
    BeginRound(round_);
    work_.blocks = {0, 1, 2};
  }
  ScanOrder OrderOf(const TileScan& scan) const {
    return ScanOrderOf(scan, *blocks_, work_, round_);
  }
  const kernels::BlockView& ViewOf(std::int64_t block) const { return blocks_->Of(0, block)->view; }
  kernels::PanelPart ValuesOf(std::int64_t block, kernels::PanelRange panels) const {
    return kernels::ValuesOf(ViewOf(block), panels);
  }
  kernels::PanelPart KeysOf(std::int64_t block, kernels::PanelRange panels) const {
    return kernels::KeysOf(ViewOf(block), panels);
  }

  const TestRows rows_{kBlocks * kernels::kBlockRowsMax, kPassKeyDim, kPassValueDim, 1};
  std::vector<float> queries_;
  PassTasks tasks_;
  std::optional<AlignedBlocks> blocks_;
  HeadQueryRound round_;
  RoundWork work_;
};

TEST_F(ScanOrderTest, ATileAloneFetchesItsBlocksValuesAndTheNextBlocksKeys) {
  Begin(10);
  TileScan scan{.item_blocks = kAllBlocks,
                .block = 1,
                .item_begin = 0,
                .item_end = 10,
                .begin = 0,
                .end = 10};
  const ScanOrder order = OrderOf(scan);
  EXPECT_TRUE(order.is_first_of_block);
  EXPECT_THAT(order.while_scoring, IsPart(ValuesOf(1, {.begin = 0, .end = kPanels})));
  EXPECT_THAT(order.while_summing, IsPart(KeysOf(2, {.begin = 0, .end = kPanels})));
  scan.block = 2;
  EXPECT_THAT(OrderOf(scan).while_scoring, IsPart(ValuesOf(2, {.begin = 0, .end = kPanels})));
  EXPECT_THAT(OrderOf(scan).while_summing, IsNothing()) << "there is no next block";
}

TEST_F(ScanOrderTest, SeveralTilesFetchAPartOfTheNextBlockEach) {
  Begin(20);
  constexpr kernels::PanelRange kFirst{.begin = 0, .end = kPanels * 16 / 20};
  constexpr kernels::PanelRange kSecond{.begin = kFirst.end, .end = kPanels};
  TileScan first{.item_blocks = kAllBlocks,
                 .block = 0,
                 .item_begin = 0,
                 .item_end = 20,
                 .begin = 0,
                 .end = 16};
  EXPECT_THAT(OrderOf(first).while_scoring, IsPart(ValuesOf(0, {.begin = 0, .end = kPanels})))
      << "nobody has fetched the item's first block";
  EXPECT_THAT(OrderOf(first).while_summing, IsPart(KeysOf(1, kFirst)));
  TileScan second = first;
  second.begin = 16;
  second.end = 20;
  second.is_first_of_block = false;
  EXPECT_FALSE(OrderOf(second).is_first_of_block);
  EXPECT_THAT(OrderOf(second).while_scoring, IsPart(ValuesOf(1, kSecond)));
  EXPECT_THAT(OrderOf(second).while_summing, IsPart(KeysOf(1, kSecond)));
  first.block = 1;
  EXPECT_THAT(OrderOf(first).while_scoring, IsPart(ValuesOf(2, kFirst)));
  EXPECT_THAT(OrderOf(first).while_summing, IsPart(KeysOf(2, kFirst)));
  first.block = 2;
  EXPECT_THAT(OrderOf(first).while_scoring, IsNothing());
  EXPECT_THAT(OrderOf(first).while_summing, IsNothing());
}

TEST_F(ScanOrderTest, AtTheEndOfARangeOnlyATileOfAllQueriesFetchesTheNextBlock) {
  Begin(16);
  const TileScan of_all{.item_blocks = {.begin = 0, .end = 1},
                        .block = 0,
                        .item_begin = 0,
                        .item_end = 16,
                        .begin = 0,
                        .end = 16};
  EXPECT_THAT(OrderOf(of_all).while_summing, IsPart(KeysOf(1, {.begin = 0, .end = kPanels})));
  TileScan of_some = of_all;
  of_some.item_end = of_some.end = 8;
  EXPECT_THAT(OrderOf(of_some).while_scoring, IsPart(ValuesOf(0, {.begin = 0, .end = kPanels})));
  EXPECT_THAT(OrderOf(of_some).while_summing, IsNothing());
}

TEST_F(ScanOrderTest, FetchesNothingWhereNoValuesAreSummed) {
  Begin(10, Mode::kHard);
  const ScanOrder order = OrderOf({.item_blocks = kAllBlocks, .item_end = 10, .end = 10});
  EXPECT_THAT(order.while_scoring, IsNothing());
  EXPECT_THAT(order.while_summing, IsNothing());
}

TEST_F(ScanOrderTest, ForOneQueryOverFloat32TheCpuMayReadAhead) {
  Begin(1);
  const std::int64_t bytes = kBlocks * kPanels * ViewOf(0).shape.bytes();
  const ScanOrder order = OrderOf({.item_blocks = kAllBlocks, .item_end = 1, .end = 1});
  EXPECT_EQ(order.while_scoring.panel_count == 0, kernels::CpuReadsAhead(bytes));
  EXPECT_EQ(order.while_summing.panel_count == 0, kernels::CpuReadsAhead(bytes));
}

}  // namespace
}  // namespace softlookup
