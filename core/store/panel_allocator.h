#ifndef SOFTLOOKUP_CORE_STORE_PANEL_ALLOCATOR_H_
#define SOFTLOOKUP_CORE_STORE_PANEL_ALLOCATOR_H_

#include <cstdint>
#include <memory>

#include "core/kernels/panel.h"
#include "core/store/panel_buffer.h"

namespace softlookup {

// Allocates the panels of a store's blocks and sketches: in buffers of their own for a small store,
// on large pages for a large one. Not thread-safe.
//
// A copy of the allocator is a state to go back to. When it is copied back, it allocates again what
// was allocated since. The buffers that were allocated since must then not be used any more.
class PanelAllocator {
 public:
  // Allocates `panel_count` panels of one block, or of its sketch, for a store of `block_count`
  // blocks. The panels are not cleared if they are in a place that was allocated before.
  std::shared_ptr<PanelBuffer> Allocate(const kernels::PanelShape& shape, std::int64_t panel_count,
                                        std::int64_t block_count);
  // Bytes that are taken but belong to no panels.
  std::int64_t unused_bytes() const {
    return wasted_region_bytes_ + (region_ == nullptr ? 0 : PanelRegion::UnusedBytes(region_used_));
  }

 private:
  // The next panels are put behind the first `region_used_` bytes, if they fit. Null while no
  // panels have been put on large pages.
  std::shared_ptr<PanelRegion> region_;
  std::int64_t region_used_ = 0;
  // Committed bytes behind the last panels of all earlier regions. No panels use them.
  std::int64_t wasted_region_bytes_ = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_PANEL_ALLOCATOR_H_
