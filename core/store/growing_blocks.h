#ifndef SOFTLOOKUP_CORE_STORE_GROWING_BLOCKS_H_
#define SOFTLOOKUP_CORE_STORE_GROWING_BLOCKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/kernels/panel_rows.h"
#include "core/memory/running_memory.h"
#include "core/store/panel_allocator.h"
#include "core/store/sealed_block.h"
#include "core/store/shared_flag.h"
#include "core/store/shared_list.h"
#include "core/store/stored_blocks.h"
#include "core/store/tail.h"
#include "softlookup/store_config.h"

namespace softlookup {

// Arranges a store's rows in blocks, as rows are appended and deleted. Not thread-safe, but its
// views are. Functions that take a `config` must get the store's.
//
// A copy is a savepoint. It costs a few pointers, and no rows. The first row that is appended
// afterwards costs a copy of the memories and of the tail's partial panel. Once a copy is assigned
// back, views of what was changed since must not be read.
class GrowingBlocks {
 public:
  // Whether rows are added to the running memories. With kNone, no memory may be read.
  enum class Memories { kKept, kNone };
  // What blocks that were read from the log are made of.
  struct Parts {
    std::vector<SealedBlock> sealed;  // Without packed rows and sketches.
    TailParts tail;
    std::shared_ptr<MemorySet> memories;  // After the last row. Null without a row.
    std::uint64_t deleted_count = 0;
  };

  // Makes blocks without rows.
  GrowingBlocks(const StoreConfig& config, Memories memories);
  GrowingBlocks(const StoreConfig& config, Parts parts);

  const kernels::PanelShape& shape() const { return tail_.shape(); }
  // Rows ever appended, deleted ones included.
  std::uint64_t row_count() const {
    return static_cast<std::uint64_t>(sealed_.size() * tail_.block_rows() + tail_.row_count());
  }
  std::uint64_t deleted_count() const { return deleted_count_; }
  // The state of the memories after the last row, for MemoriesView. Null before the first row.
  const MemorySet* memories() const { return memories_.get(); }

  // `reader` must read panels of shape().
  void Append(const NewRow& row, const StoreConfig& config, kernels::PanelRowReader& reader);
  // Deletes the live rows at `positions`, which must ascend. Returns the indexes of their blocks.
  // Memories do not change.
  std::vector<std::int64_t> Delete(absl::Span<const std::uint64_t> positions);

  // Returns the blocks as they are now.
  StoredBlocks View();
  // Returns the bytes that the blocks and the memories have allocated. Takes the same time for a
  // store of any size.
  std::int64_t bytes() const;

 private:
  // Adds the newest row of the tail, which is not sealed yet.
  void AddToMemories(const kernels::PanelRow& row, const StoreConfig& config);
  // Moves the full blocks `blocks` behind the sealed blocks. Makes their packed rows or sketches,
  // which must be unset.
  void AddSealed(absl::Span<SealedBlock> blocks, const StoreConfig& config);
  // Packs the live rows of a sealed block if they are few. A lookup then costs only as much as the
  // live rows. Call this whenever rows of the block are deleted. Which blocks are packed then
  // depends on which rows are live, not on the order of the deletions. That matters because the
  // bits of an answer depend on which blocks are packed.
  void PackIfFewAreLive(SealedBlock& block) const;

  SharedList<SealedBlock> sealed_;
  std::int64_t sealed_bytes_ = 0;   // Sum of SealedBlock::bytes() over sealed_.
  PanelAllocator panel_allocator_;  // Allocates the blocks and their sketches.
  Tail tail_;
  std::uint64_t deleted_count_ = 0;
  // The state of the memories after the last row. Null before the first row, so that an empty store
  // is small. Also null if no memories are kept.
  std::shared_ptr<MemorySet> memories_;
  SharedFlag memories_are_shared_;  // Whether a copy of these blocks may share the memories.
  bool keeps_memories_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_GROWING_BLOCKS_H_
