#ifndef SOFTLOOKUP_CORE_ATTENTION_WORK_CUT_H_
#define SOFTLOOKUP_CORE_ATTENTION_WORK_CUT_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace softlookup {

// Neighbours [begin, end) among the blocks that a round of a pass scans: a single block, or all
// those of a merge group.
struct BlockRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  // True if the round scans no later block of the last block's merge group.
  bool ends_group = false;
};

// What a round of a pass has to scan, and how many threads scan it.
struct WorkSize {
  std::int64_t block_count = 0;
  std::int64_t query_count = 0;  // Head queries.
  std::int64_t thread_count = 1;
};

// The work of a round, cut into items. An item is a block range for up to item_queries head
// queries.
struct WorkCut {
  std::vector<BlockRange> ranges;
  std::int64_t item_queries = 0;
};

// The blocks that a round scans, and how their scan is cut into work items.
struct RoundWork {
  // The blocks of the pass that may have rows to scan for some head query, ascending.
  std::vector<std::int64_t> blocks;
  WorkCut cut;  // Its block numbers are indices in `blocks`.

  // Returns the block of the pass at an index in `blocks`.
  std::int64_t BlockAt(std::int64_t at) const { return blocks[static_cast<std::size_t>(at)]; }
  const BlockRange& RangeOf(std::int64_t range) const {
    return cut.ranges[static_cast<std::size_t>(range)];
  }
};

// Cuts the work of a round into enough items to keep all threads busy, or into as many as its
// blocks and head queries allow. Overwrites `cut`. group_of(i) must return the merge group of block
// i in [0, block_count). Blocks of one group must be neighbours.
void CutWork(const WorkSize& size, absl::FunctionRef<std::int64_t(std::int64_t)> group_of,
             WorkCut& cut);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_WORK_CUT_H_
