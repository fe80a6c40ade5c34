#ifndef SOFTLOOKUP_CORE_ATTENTION_ALIGNED_BLOCKS_H_
#define SOFTLOOKUP_CORE_ATTENTION_ALIGNED_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/pass_task.h"
#include "core/attention/positioned_block.h"

namespace softlookup {

// The blocks of all tasks of a pass, aligned by position. The distinct first positions of the
// tasks' blocks, in ascending order, are numbered from 0. Block b of the pass consists of the
// tasks' blocks that begin at first position number b.
class AlignedBlocks {
 public:
  // `tasks` are those of the pass. They must be over rows of one store, and outlive this object.
  explicit AlignedBlocks(absl::Span<PassTask* const> tasks);

  std::int64_t count() const { return static_cast<std::int64_t>(rows_.size()); }
  // Returns the task's block at block `block` of the pass, or null if the task has none there.
  const PositionedBlock* Of(std::size_t task_index, std::int64_t block) const {
    return blocks_[static_cast<std::size_t>(block) * task_count_ + task_index];
  }
  // Returns the rows of the block that some task attends to, as one range: from the first to the
  // last of them. Rows count from the block's first row.
  kernels::RowRange rows(std::int64_t block) const {
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
  std::int64_t group_of(std::int64_t block) const {
    return groups_[static_cast<std::size_t>(block)];
  }

  static constexpr std::int64_t kMergeGroupBlocks = 8;

 private:
  const std::size_t task_count_;
  std::vector<const PositionedBlock*> blocks_;  // [block][task]
  std::vector<kernels::RowRange> rows_;         // [block]
  std::vector<std::int64_t> groups_;            // [block]
  std::int64_t row_bytes_ = 0;
  std::int64_t panels_max_ = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ALIGNED_BLOCKS_H_
