#ifndef SOFTLOOKUP_CORE_STORE_GROWING_MEMORIES_H_
#define SOFTLOOKUP_CORE_STORE_GROWING_MEMORIES_H_

#include <cstdint>
#include <memory>

#include "core/kernels/panel_rows.h"
#include "core/memory/running_memory.h"
#include "core/store/shared_flag.h"
#include "softlookup/store_config.h"

namespace softlookup {

// Holds the state of a store's memories after its last row, and adds each new row to it. Not
// thread-safe.
//
// A copy is a savepoint. It costs a pointer. The first row that is added afterwards costs a copy of
// the memories.
class GrowingMemories {
 public:
  // Makes memories that have seen no row.
  GrowingMemories() = default;
  // Goes on from a copy of `state`, the state after the last row of a store with rows.
  explicit GrowingMemories(const MemorySet& state) : state_(std::make_shared<MemorySet>(state)) {}

  // The state after the last row, for MemoriesView. Null before the first row. Valid until the next
  // Add() or assignment.
  const MemorySet* state() const { return state_.get(); }
  // Returns a copy of state(), which further rows do not change. Null before the first row.
  std::shared_ptr<const MemorySet> CopyState() const;
  // Adds a row as the store keeps it. `config` must be the store's.
  void Add(const kernels::PanelRow& row, const StoreConfig& config);

  // Returns the bytes that the memories have allocated.
  std::int64_t bytes() const { return state_ == nullptr ? 0 : state_->bytes(); }

 private:
  std::shared_ptr<MemorySet> state_;  // Null before the first row, so that an empty store is small.
  SharedFlag state_is_shared_;        // Whether a copy of this object may share the state.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_GROWING_MEMORIES_H_
