#include "core/attention/round_scan.h"

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

// A round of 20 queries over the rows of three merge groups.
class RoundScanTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kBlocks = 2 * AlignedBlocks::kMergeGroupBlocks + 2;
  static constexpr std::int64_t kRows = kBlocks * kernels::kBlockRowsMax;

  RoundScanTest() {
    tasks_.Add(TaskOver(rows_, queries_, 0, kRows));
    blocks_.emplace(tasks_.all());
    order_.emplace(tasks_.all());
    while (const std::optional<HeadQueryRef> next = order_->Next()) round_.refs.push_back(*next);
    round_.sums_stride = kernels::PaddedValueDim(kPassValueDim);
    BeginRound(round_);
  }

  // Cuts all blocks into ranges: merge groups, or single blocks.
  void Cut(bool by_group, std::int64_t item_queries) {
    work_ = {};
    work_.cut.item_queries = item_queries;
    std::int64_t begin = 0;
    for (std::int64_t block = 0; block < kBlocks; ++block) {
      const bool ends_group = block + 1 == kBlocks ||
                              blocks_->merge_group_of(block) != blocks_->merge_group_of(block + 1);
      work_.blocks.push_back(block);
      if (by_group && !ends_group) continue;
      work_.cut.ranges.push_back({.begin = begin, .end = block + 1, .ends_group = ends_group});
      begin = block + 1;
    }
  }

  const TestRows rows_{kRows, kPassKeyDim, kPassValueDim, 1};
  const std::vector<float> queries_ = NormalFloats(20 * kPassKeyDim, 2);
  PassTasks tasks_;
  std::optional<AlignedBlocks> blocks_;
  std::optional<HeadQueryOrder> order_;
  HeadQueryRound round_;
  RoundWork work_;
  const PassThreads threads_{Pool(), 2 * kInlineCostMax};
};

TEST_F(RoundScanTest, TheBitsDependNeitherOnTheCutNorOnTheWindows) {
  Cut(/*by_group=*/false, /*item_queries=*/16);
  RoundScan(*blocks_, *order_, work_, threads_, round_).AddWindow(0, kBlocks);
  const std::vector<double> sums = round_.sums;
  const std::vector<HeadQueryState> states = round_.states;
  EXPECT_EQ(states[0].state.counted_rows, static_cast<std::uint64_t>(kRows));

  round_.Begin();
  Cut(/*by_group=*/true, /*item_queries=*/32);
  RoundScan scan(*blocks_, *order_, work_, threads_, round_);
  for (std::int64_t group = 0; group < std::ssize(work_.cut.ranges); ++group) {
    scan.AddWindow(group, group + 1);
  }
  EXPECT_EQ(round_.sums, sums);
  for (std::size_t q = 0; q < states.size(); ++q) {
    EXPECT_EQ(round_.states[q].state.counted_rows, states[q].state.counted_rows) << q;
    EXPECT_EQ(round_.states[q].state.max_logit, states[q].state.max_logit) << q;
    EXPECT_EQ(round_.states[q].state.weight, states[q].state.weight) << q;
  }
  EXPECT_EQ(scan.candidate_row_count(), 0);
}

TEST_F(RoundScanTest, ScansCandidatesAlone) {
  constexpr std::int64_t kPanels = kernels::kBlockRowsMax / kernels::kPanelRows;
  std::vector<float> bounds(static_cast<std::size_t>(kBlocks * kPanels));
  bounds[1 * kPanels + 3] = bounds[10 * kPanels + 7] = 1;
  Candidates candidates{.bounds = bounds.data(),
                        .block_stride = kPanels,
                        .cut = 0.5,
                        .kept_blocks = BlockSet(kBlocks)};
  candidates.kept_blocks.Add(1);
  candidates.kept_blocks.Add(10);
  round_.candidates.assign(round_.candidates.size(), &candidates);
  Cut(/*by_group=*/true, /*item_queries=*/32);
  RoundScan scan(*blocks_, *order_, work_, threads_, round_);
  scan.AddWindow(0, std::ssize(work_.cut.ranges));
  for (std::int64_t q = 0; q < round_.size(); ++q) {
    EXPECT_EQ(round_.StateOf(q).state.counted_rows, 2u * kernels::kPanelRows) << q;
  }
  // Two panels for each of the two tiles of queries.
  EXPECT_EQ(scan.candidate_row_count(), 2 * 2 * kernels::kPanelRows);
}

TEST_F(RoundScanTest, ACancelledTaskIsNotScanned) {
  tasks_.cancel(0).Cancel();
  Cut(/*by_group=*/true, /*item_queries=*/32);
  RoundScan(*blocks_, *order_, work_, threads_, round_).AddWindow(0, std::ssize(work_.cut.ranges));
  for (std::int64_t q = 0; q < round_.size(); ++q) {
    EXPECT_EQ(round_.StateOf(q).state.counted_rows, 0u) << q;
  }
}

}  // namespace
}  // namespace softlookup
