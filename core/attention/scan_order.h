#ifndef SOFTLOOKUP_CORE_ATTENTION_SCAN_ORDER_H_
#define SOFTLOOKUP_CORE_ATTENTION_SCAN_ORDER_H_

#include <cstdint>

#include "core/attention/aligned_blocks.h"
#include "core/attention/block_scan.h"
#include "core/attention/head_query_round.h"
#include "core/attention/work_cut.h"

namespace softlookup {

// The scan of a tile of head queries over one block, as a part of a work item. A thread scans the
// item's blocks in their order, and its tiles one after another over each block.
struct TileScan {
  BlockRange item_blocks;  // Indices in RoundWork::blocks.
  std::int64_t block = 0;  // Index in RoundWork::blocks.
  // Head queries of the round: the item's are [item_begin, item_end), the tile's [begin, end).
  std::int64_t item_begin = 0;
  std::int64_t item_end = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool is_first_of_block = true;  // As in ScanOrder.
};

// Returns what the scan has to know about the scans around it: whether it is the first of its
// block, and what to prefetch, if anything, for itself and for the next scans. The head queries of
// the tile must have no Candidates in `round`, and their tasks must have the block.
ScanOrder ScanOrderOf(const TileScan& scan, const AlignedBlocks& blocks, const RoundWork& work,
                      const HeadQueryRound& round);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_SCAN_ORDER_H_
