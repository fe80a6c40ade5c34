#include "core/attention/scan_order.h"

#include "core/base/check.h"
#include "core/kernels/panel.h"
#include "core/kernels/prefetch.h"

namespace softlookup {
namespace {

using kernels::PanelRange;

// Returns an estimate of the bytes of all rows in work.blocks. `shape` must be the shape of their
// panels.
std::int64_t ScanBytes(const AlignedBlocks& blocks, const RoundWork& work,
                       const kernels::PanelShape& shape) {
  // Assumes that every block has as many panels as the first one.
  const PanelRange panels = PanelsOf(blocks.rows(work.BlockAt(0)));
  return static_cast<std::int64_t>(work.blocks.size()) * (panels.end - panels.begin) *
         shape.bytes();
}

}  // namespace

ScanOrder ScanOrderOf(const TileScan& scan, const AlignedBlocks& blocks, const RoundWork& work,
                      const HeadQueryRound& round) {
  ScanOrder order{.is_first_of_block = scan.is_first_of_block};
  const HeadQueryRef& first = round.RefOf(scan.begin);
  const std::int64_t block_index = work.BlockAt(scan.block);
  const PositionedBlock* block = blocks.Of(first.task_index, block_index);
  SOFTLOOKUP_CHECK(block != nullptr) << "task " << first.task_index << ", block " << block_index;
  const kernels::BlockView& view = block->view;
  // For a single query over FLOAT32 rows, the CPU's own prefetching can be better than ours. Other
  // storage types take so long to decode that our prefetching always pays.
  if (scan.end - scan.begin == 1 && view.shape.storage == StorageType::kFloat32 &&
      kernels::CpuReadsAhead(ScanBytes(blocks, work, view.shape))) {
    return order;
  }
  if (!first.task->head_queries().sums_values()) return order;
  // A core can have only few fetches under way, so fetches are spread over all its computing. If
  // several tiles of an item scan a block, each fetches a part of the next block. On the item's
  // first block, the first of them fetches its own block's values instead of its part of the next
  // block's. A single tile fetches its own block's values and the next block's keys. Rows that no
  // tile fetched, for instance because a tile was not scanned, are read when they are scanned.
  const bool is_alone = scan.begin == scan.item_begin && scan.end == scan.item_end;
  const bool is_fetched = scan.block > scan.item_blocks.begin && !is_alone;
  if (scan.is_first_of_block && !is_fetched) {
    order.while_scoring = ValuesOf(view, PanelsOf(blocks.rows(block_index)));
  }
  if (scan.block + 1 == static_cast<std::int64_t>(work.blocks.size())) return order;
  // At the end of a range, only a tile of all the round's head queries fetches the next block. Its
  // thread usually takes the next range, too.
  const bool is_of_all = scan.end - scan.begin == round.size();
  if (scan.block + 1 == scan.item_blocks.end && !is_of_all) return order;
  const std::int64_t next_block = work.BlockAt(scan.block + 1);
  const PositionedBlock* next = blocks.Of(first.task_index, next_block);
  if (next == nullptr) return order;
  const PanelRange all = PanelsOf(blocks.rows(next_block));
  const auto part_end = [&](std::int64_t tile_end) {
    return all.begin +
           (all.end - all.begin) * (tile_end - scan.item_begin) / (scan.item_end - scan.item_begin);
  };
  const PanelRange part{.begin = part_end(scan.begin), .end = part_end(scan.end)};
  if (is_fetched || !scan.is_first_of_block) order.while_scoring = ValuesOf(next->view, part);
  order.while_summing = KeysOf(next->view, part);
  return order;
}

}  // namespace softlookup
