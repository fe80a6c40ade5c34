#include "core/store/panel_allocator.h"

namespace softlookup {
namespace {

// Further blocks of a store go on large pages once its blocks have this many bytes. Further
// sketches do so once its sketches have this many bytes.
constexpr std::int64_t kLargePagesMin = std::int64_t{32} << 20;

}  // namespace

std::shared_ptr<PanelBuffer> PanelAllocator::Allocate(const kernels::PanelShape& shape,
                                                      std::int64_t panel_count,
                                                      std::int64_t block_count) {
  const std::int64_t bytes = panel_count * shape.bytes();
  // The operating system commits large pages whole, so only a store that fills many of them uses
  // them.
  if (block_count * bytes < kLargePagesMin || !PanelBuffer::CommitsAsWritten(shape, panel_count)) {
    return std::make_shared<PanelBuffer>(shape, panel_count);
  }
  if (region_ == nullptr || region_->size() - region_used_ < bytes) {
    if (region_ != nullptr) wasted_region_bytes_ += PanelRegion::UnusedBytes(region_used_);
    region_ = PanelRegion::Make(bytes);
    region_used_ = 0;
    if (region_ == nullptr) return std::make_shared<PanelBuffer>(shape, panel_count);
  }
  auto buffer = std::make_shared<PanelBuffer>(shape, panel_count, region_, region_used_);
  region_used_ += (bytes + 63) / 64 * 64;  // The next buffer begins on a cache line, too.
  return buffer;
}

}  // namespace softlookup
