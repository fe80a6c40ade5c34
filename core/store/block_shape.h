#ifndef SOFTLOOKUP_CORE_STORE_BLOCK_SHAPE_H_
#define SOFTLOOKUP_CORE_STORE_BLOCK_SHAPE_H_

#include <cstdint>

#include "core/kernels/panel.h"
#include "softlookup/store_config.h"

namespace softlookup {

// Returns the layout of a store's panels.
kernels::PanelShape PanelShapeOf(const StoreConfig& config);

// Returns the rows per block: a power of two in [16, 1024], as many as fit a core's second-level
// cache, but at least 16. A pass then reads a block from RAM once for many queries. The result must
// depend only on `shape`, because the bits of an answer depend on the rows per block.
std::int64_t BlockRows(const kernels::PanelShape& shape);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_BLOCK_SHAPE_H_
