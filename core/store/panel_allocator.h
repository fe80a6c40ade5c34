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
// A copy of the allocator is a savepoint. After a copy is assigned back, the allocator gives out
// the same bytes again. So buffers that were allocated after the copy was made must not be used any
// more.
class PanelAllocator {
 public:
  // Allocates `panel_count` panels of one block, or of its sketch, for a store of `block_count`
  // blocks. The panels are all zero, unless a rollback has made the allocator give out their bytes
  // again.
  std::shared_ptr<PanelBuffer> Allocate(const kernels::PanelShape& shape, std::int64_t panel_count,
                                        std::int64_t block_count);
  // Returns the bytes of large pages that are committed but hold no panels.
  std::int64_t unused_bytes() const {
    return wasted_region_bytes_ + (region_ == nullptr ? 0 : PanelRegion::UnusedBytes(region_used_));
  }

 private:
  // The next panels are put into this region behind its first `region_used_` bytes, if they fit.
  // Null before the first region, or if the last mmap failed.
  std::shared_ptr<PanelRegion> region_;
  std::int64_t region_used_ = 0;
  // Committed bytes behind the last panels of all earlier regions. No panels use them.
  std::int64_t wasted_region_bytes_ = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_PANEL_ALLOCATOR_H_
