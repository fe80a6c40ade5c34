#ifndef SOFTLOOKUP_CORE_ATTENTION_ROUND_SCAN_H_
#define SOFTLOOKUP_CORE_ATTENTION_ROUND_SCAN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/attention/aligned_blocks.h"
#include "core/attention/block_scan.h"
#include "core/attention/head_query_order.h"
#include "core/attention/head_query_round.h"
#include "core/attention/pass_threads.h"
#include "core/attention/work_cut.h"

namespace softlookup {

// Adds the rows of a round's blocks to the states of its head queries, one window after another. A
// window is a run of neighbouring block ranges of the round (work_cut.h).
//
// Each thread scans the work items of a window one after another. The scan of an item makes a state
// over the item's blocks for each of its head queries. Once all items are scanned, their states are
// merged in the order of blocks.
class RoundScan {
 public:
  // All arguments must outlive this object. `round` and `work` may change between two calls of
  // AddWindow. Head queries that scan all rows must come first in the round.
  RoundScan(const AlignedBlocks& blocks, const HeadQueryOrder& order, const RoundWork& work,
            const PassThreads& threads, HeadQueryRound& round)
      : blocks_(blocks), order_(order), work_(work), threads_(threads), round_(round) {}

  // Adds the rows of the block ranges [ranges_begin, ranges_end) of the round's work. The last of
  // them must end a merge group, and so must the range before the first.
  void AddWindow(std::int64_t ranges_begin, std::int64_t ranges_end);

  // Returns how many rows second looks have scanned in all windows so far.
  std::int64_t candidate_row_count() const { return candidate_row_count_; }

 private:
  // A block range, and the head queries [begin, end) of the round. The state of head query q is the
  // window's state `states_begin` + q.
  struct WorkItem {
    const BlockRange& blocks;
    std::int64_t states_begin = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  void ScanWindow(std::int64_t ranges_begin, std::int64_t ranges_end);
  void ScanItem(const WorkItem& item);
  // Scans the item's block work_.blocks[at] for a tile of head queries from `query` on. Returns the
  // head query after the tile. `is_first` must be true in the item's first call for a block.
  // ScanTile sets it to false when it scans a tile of head queries that scan all rows.
  std::int64_t ScanTile(const WorkItem& item, std::int64_t at, std::int64_t query, bool& is_first);
  // Merges the window's states into the round's, one merge group after another. Within a group,
  // merges all states into the first one, and then the first one into the round's.
  void MergeWindow(std::int64_t ranges_begin, std::int64_t ranges_end);

  // Returns the block of the head query's task at block `block` of the pass, or null if the task
  // has none there.
  const PositionedBlock* BlockOf(std::int64_t block, const HeadQueryRef& query) const {
    return blocks_.Of(query.task_index, block);
  }
  // Returns where the sums of a state begin in the window's sums.
  std::int64_t SumsOffset(std::int64_t state) const { return state * round_.sums_stride; }

  const AlignedBlocks& blocks_;
  const HeadQueryOrder& order_;
  const RoundWork& work_;
  const PassThreads& threads_;
  HeadQueryRound& round_;
  std::atomic<std::int64_t> candidate_row_count_{0};

  // The window in progress: [range][head query of the round].
  std::vector<PartialState> window_states_;
  std::unique_ptr<double[]> window_sums_;
  std::int64_t window_size_ = 0;  // States that the window has room for.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ROUND_SCAN_H_
