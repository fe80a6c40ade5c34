#include "core/store/growing_memories.h"

#include "core/store/store_memories.h"

namespace softlookup {

std::shared_ptr<const MemorySet> GrowingMemories::CopyState() const {
  return state_ == nullptr ? nullptr : std::make_shared<const MemorySet>(*state_);
}

void GrowingMemories::Add(const kernels::PanelRow& row, const StoreConfig& config) {
  Unshare(state_, state_is_shared_, [&] {
    return std::make_shared<MemorySet>(MemorySetOf(config));
  }).Add(row.key, row.key_stride, row.value);
}

}  // namespace softlookup
