#ifndef SOFTLOOKUP_CORE_STORE_GROWING_BLOCKS_H_
#define SOFTLOOKUP_CORE_STORE_GROWING_BLOCKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/kernels/panel_rows.h"
#include "core/memory/running_memory.h"
#include "core/store/block_shape.h"
#include "core/store/panel_allocator.h"
#include "core/store/sealed_block.h"
#include "core/store/shared_list.h"
#include "core/store/stored_blocks.h"
#include "core/store/tail.h"
#include "softlookup/store_config.h"

namespace softlookup {

// Arranges the rows of a store, or of an Attend, in blocks, as rows are appended and deleted. Not
// thread-safe, but its views are. Functions that take a `config` must get the store's. They use
// only its dimensions, number of heads and storage type. So an Attend need not set anything else.
//
// A copy is a savepoint. It costs a few pointers, and no rows. The first row that is appended
// afterwards costs a copy of the tail's partial panel. To assign a copy back is a rollback. Views
// that show a later change than the copy must not be read afterwards.
class GrowingBlocks {
 public:
  // What blocks that were read from the log are made of.
  struct Parts {
    std::vector<SealedBlock> sealed;  // `sketch`, `group_balls` and `live_rows` are unset, and
                                      // `packed` unless compacted. A block that is not resident
                                      // has the offsets of its packed rows.
    TailParts tail;
    std::uint64_t deleted_count = 0;
  };

  // Makes blocks without rows.
  explicit GrowingBlocks(const StoreConfig& config) : tail_(PanelShapeOf(config)) {}
  GrowingBlocks(const StoreConfig& config, Parts parts);

  const kernels::PanelShape& shape() const { return tail_.shape(); }
  // Rows ever appended, deleted ones included.
  std::uint64_t row_count() const {
    return static_cast<std::uint64_t>(sealed_.size() * tail_.block_rows() + tail_.row_count());
  }
  std::uint64_t deleted_count() const { return deleted_count_; }
  // Whether the next row is the first one of a block.
  bool next_row_begins_block() const { return tail_.row_count() == 0; }

  // Sets the state of the memories before the next row, for StoredBlocks::MemoriesBefore(). The
  // state may be null. Call this only if next_row_begins_block(). The state of a block that begins
  // without this call is null.
  void SetMemoriesBefore(std::shared_ptr<const MemorySet> memories);
  // Appends a row. Returns it as it is stored, valid until the next Read() of `reader` and while
  // row.key and row.value exist. `reader` must read panels of shape().
  kernels::PanelRow Append(const NewRow& row, const StoreConfig& config,
                           kernels::PanelRowReader& reader);
  // Deletes the rows at `positions`, which must ascend. All of these rows must be live. Returns the
  // indexes of the blocks that have these rows, ascending.
  std::vector<std::int64_t> Delete(absl::Span<const std::uint64_t> positions);

  // Drops the rows that StoredBlocks::RowsToDropOf() counts in the blocks [begin, end). Returns the
  // indexes of the blocks that lost rows, ascending.
  std::vector<std::int64_t> Compact(std::int64_t begin, std::int64_t end);

  // Full blocks that are not resident.
  std::int64_t evicted_count() const { return evicted_count_; }
  // Evicts each resident full block for which should_evict(index) is true. All rows must be
  // committed.
  void Evict(absl::FunctionRef<bool(std::int64_t)> should_evict);
  // Makes block `index`, which must not be resident, resident with these rows of it. They must fit
  // the block: be compacted if it is, and be those that it kept. To have the balls of groups, load
  // the blocks of a group in ascending order.
  void Load(std::int64_t index, RowsOfBlock rows, const StoreConfig& config);

  // Returns the blocks as they are now.
  StoredBlocks View();
  // Returns the bytes that the blocks have allocated, with the memories before their first rows.
  // Takes the same time for a store of any size.
  std::int64_t bytes() const;

 private:
  // Moves `blocks`, which must be full, behind the sealed blocks. Makes the packed rows of each
  // block that has few live rows, the sketch of each other block for which HasSketch() is true, the
  // balls of groups, and the live_rows of all. These members must be unset, except the packed rows
  // of compacted blocks.
  void AddSealed(absl::Span<SealedBlock> blocks, const StoreConfig& config);
  // Makes the sketch of a block, if it has one. `block_count` is that of the store, with this
  // block.
  void MakeSketchOf(SealedBlock& block, std::int64_t block_count, const StoreConfig& config);
  // Returns the balls of the group that block `index` is the last of. Null if it is not the last of
  // one, or if a block of the group has no balls. `blocks` are the blocks behind the sealed ones.
  std::shared_ptr<const GroupBalls> GroupBallsOf(std::int64_t index,
                                                 absl::Span<const SealedBlock> blocks) const;

  SharedList<SealedBlock> sealed_;
  std::int64_t sealed_bytes_ = 0;   // Sum of SealedBlock::bytes() over sealed_.
  PanelAllocator panel_allocator_;  // Allocates whole blocks and their sketches.
  Tail tail_;
  std::uint64_t deleted_count_ = 0;
  std::int64_t evicted_count_ = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_GROWING_BLOCKS_H_
