#include "core/attention/aligned_blocks.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace softlookup {

using kernels::RowRange;

AlignedBlocks::AlignedBlocks(absl::Span<PassTask* const> tasks) : task_count_(tasks.size()) {
  std::vector<std::uint64_t> positions;
  for (const PassTask* const pass_task : tasks) {
    const absl::Span<const PositionedBlock> blocks = pass_task->attention_task().blocks;
    std::vector<std::uint64_t> own, all;
    own.reserve(blocks.size());
    for (const PositionedBlock& block : blocks) own.push_back(block.first_position);
    if (own == positions) continue;
    all.reserve(positions.size() + own.size());
    std::set_union(positions.begin(), positions.end(), own.begin(), own.end(),
                   std::back_inserter(all));
    positions = std::move(all);
  }
  blocks_.resize(positions.size() * task_count_);
  rows_.resize(positions.size());
  groups_.resize(positions.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    std::size_t at = 0;
    const AttentionTask& task = tasks[i]->attention_task();
    for (const PositionedBlock& block : task.blocks) {
      while (positions[at] != block.first_position) ++at;
      blocks_[at * task_count_ + i] = &block;
      groups_[at] = block.number / kMergeGroupBlocks;
      panels_max_ = std::max(panels_max_, block.view.panel_count());
      row_bytes_ = block.view.shape.row_bytes();
      const RowRange rows = {.begin = block.FirstRowFrom(task.begin),
                             .end = block.FirstRowFrom(task.end)};
      RowRange& all = rows_[at];
      const bool is_first = all.end == 0;
      all = {.begin = is_first ? rows.begin : std::min(all.begin, rows.begin),
             .end = std::max(all.end, rows.end)};
    }
  }
}

std::int64_t AlignedBlocks::sketched_row_count(std::int64_t block_index) const {
  for (std::size_t task = 0; task < task_count_; ++task) {
    const PositionedBlock* block = Of(task, block_index);
    if (block != nullptr && block->sketch != nullptr) return block->view.row_count;
  }
  return 0;
}

}  // namespace softlookup
