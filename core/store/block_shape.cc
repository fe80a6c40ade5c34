#include "core/store/block_shape.h"

namespace softlookup {
namespace {

// Most bytes of a block's panels, so that they fit a core's second-level cache. A block of a single
// panel may have more.
constexpr std::int64_t kBlockBytesMax = std::int64_t{512} << 10;

}  // namespace

kernels::PanelShape PanelShapeOf(const StoreConfig& config) {
  return {.key_dim = config.key_dim, .value_dim = config.value_dim, .storage = config.storage_type};
}

std::int64_t BlockRows(const kernels::PanelShape& shape) {
  std::int64_t rows = kernels::kBlockRowsMax;
  while (rows > kernels::kPanelRows && rows / kernels::kPanelRows * shape.bytes() > kBlockBytesMax)
    rows /= 2;
  return rows;
}

}  // namespace softlookup
