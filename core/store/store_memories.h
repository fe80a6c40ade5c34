#ifndef SOFTLOOKUP_CORE_STORE_STORE_MEMORIES_H_
#define SOFTLOOKUP_CORE_STORE_STORE_MEMORIES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "core/memory/running_memory.h"
#include "softlookup/memory.h"
#include "softlookup/store_config.h"

namespace softlookup {

// Returns a store's memories in their state before the first row: `average`, then those of the
// configuration.
MemorySet MemorySetOf(const StoreConfig& config);

// Reads the state of a store's memories at one position. No set of memories is kept for the state
// before the first row: null stands for that state, so an empty store and block 0 are small.
class MemoriesView {
 public:
  // `memories` may be null. It must outlive the view, and so must `config`, the store's.
  MemoriesView(const MemorySet* memories, const StoreConfig& config)
      : memories_(memories), config_(config) {}

  // `index` is 0 for `average`; then come the memories of the configuration.
  MemoryValue Read(std::size_t index) const;
  // Returns a copy of memory `index`, which can be given further rows.
  std::unique_ptr<RunningMemory> Clone(std::size_t index) const;
  // Returns the numbers of all memories, as MemorySet::Save does.
  std::vector<double> Save() const;

 private:
  const MemorySet* const memories_;
  const StoreConfig& config_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_STORE_MEMORIES_H_
