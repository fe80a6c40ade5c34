#ifndef SOFTLOOKUP_CORE_ATTENTION_ALIGNED_BLOCKS_H_
#define SOFTLOOKUP_CORE_ATTENTION_ALIGNED_BLOCKS_H_

#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/pass_task.h"
#include "core/attention/positioned_block.h"

namespace softlookup {

// The blocks of all tasks of a pass, aligned by their numbers in the store. The distinct numbers of
// the tasks' blocks, in ascending order, are the blocks 0, 1, ... of the pass. Block b of the pass
// consists of the tasks' blocks that have its number.
class AlignedBlocks {
 public:
  // `tasks` are those of the pass. They must be over rows of one store, and outlive this object.
  explicit AlignedBlocks(absl::Span<PassTask* const> tasks);

  std::int64_t count() const { return count_; }
  // Returns the task's block at block `block` of the pass, or null if the task has none there.
  const PositionedBlock* Of(std::size_t task_index, std::int64_t block) const {
    const TaskBlocks& task = tasks_[task_index];
    const std::int64_t index = block - task.begin;
    return index >= 0 && index < std::ssize(task.blocks) ? &task.blocks[index] : nullptr;
  }
  // Returns the block of the pass that the task's first block is part of. The task's other blocks
  // are parts of those that follow. 0 if the task has no blocks.
  std::int64_t FirstOf(std::size_t task_index) const { return tasks_[task_index].begin; }
  // Returns the rows of the block that some task attends to, as one range: from the first to the
  // last of them. Rows count from the block's first row.
  kernels::RowRange rows(std::int64_t block) const {
    if (rows_.empty()) return {.begin = 0, .end = tasks_[0].blocks[block].view.row_count};
    return rows_[static_cast<std::size_t>(block)];
  }
  // Returns the number of rows of the block if it has a sketch for some task, or else 0.
  std::int64_t sketched_row_count(std::int64_t block_index) const;
  // Returns the number of panels of the block that has the most.
  std::int64_t panels_max() const { return panels_max_; }
  // Returns the bytes of one row in the store's storage type: its key, its value and, for INT8,
  // their scales.
  std::int64_t row_bytes() const { return row_bytes_; }
  // Returns the merge group of a block. A group is up to kMergeGroupBlocks neighbours: blocks whose
  // numbers in the store, divided by kMergeGroupBlocks, have the same quotient.
  std::int64_t merge_group_of(std::int64_t block) const {
    return NumberOf(block) / kMergeGroupBlocks;
  }

  static constexpr std::int64_t kMergeGroupBlocks = 8;

 private:
  struct TaskBlocks {
    absl::Span<const PositionedBlock> blocks;
    std::int64_t begin = 0;  // As FirstOf() returns it.
  };
  // Blocks of the pass whose numbers have no gap.
  struct Run {
    std::int64_t number = 0;  // Of its first block.
    std::int64_t begin = 0;   // Its first block of the pass.
    std::int64_t count = 0;
  };

  void FindRuns(absl::Span<PassTask* const> tasks);
  // Sets rows_.
  void UniteRows(absl::Span<PassTask* const> tasks);
  // Returns the run that has the block with the number `number`, which must be one of the pass.
  const Run& RunWith(std::int64_t number) const;
  std::int64_t NumberOf(std::int64_t block) const;

  std::vector<TaskBlocks> tasks_;
  std::vector<Run> runs_;  // Ascending.
  std::int64_t count_ = 0;
  // [block]. Empty if all tasks have the same blocks and attend to all their rows.
  std::vector<kernels::RowRange> rows_;
  std::int64_t row_bytes_ = 0;
  std::int64_t panels_max_ = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ALIGNED_BLOCKS_H_
