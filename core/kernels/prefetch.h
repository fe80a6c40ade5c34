#ifndef SOFTLOOKUP_CORE_KERNELS_PREFETCH_H_
#define SOFTLOOKUP_CORE_KERNELS_PREFETCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/kernels/panel.h"

namespace softlookup::kernels {

// The same bytes of each full panel of a block. A kernel that is given some fetches them into the
// second-level cache while it computes, for whoever reads them next.
struct PanelPart {
  const std::byte* first = nullptr;  // In the first panel.
  std::int64_t bytes = 0;            // Of each panel.
  std::int64_t panel_bytes = 0;
  std::int64_t panel_count = 0;
};

inline PanelPart ValuesOf(const BlockView& block) {
  return {.first = block.full_panels,
          .bytes = block.shape.key_offset(0, 0),
          .panel_bytes = block.shape.bytes(),
          .panel_count = block.full_panel_count};
}

// With the scales, which lie behind them.
inline PanelPart KeysOf(const BlockView& block) {
  const std::int64_t begin = block.shape.key_offset(0, 0);
  return {.first = block.full_panels + begin,
          .bytes = block.shape.bytes() - begin,
          .panel_bytes = block.shape.bytes(),
          .panel_count = block.full_panel_count};
}

// Fetches a part line by line, so many at each of a kernel's steps that it is done with the last.
class Prefetcher {
 public:
  Prefetcher(const PanelPart& part, std::int64_t step_count)
      : at_(part.first), panel_end_(part.first + part.bytes), part_(part) {
    const std::int64_t lines = (part.bytes + kLineBytes - 1) / kLineBytes * part.panel_count;
    lines_a_step_ = (lines + step_count - 1) / std::max<std::int64_t>(step_count, 1);
    panels_left_ = lines == 0 ? 0 : part.panel_count;
  }

  void Step() {
    if (panels_left_ == 0) return;
    for (std::int64_t i = 0; i < lines_a_step_; ++i) {
      // A line that does not exist is not fetched, and harms nothing.
      __builtin_prefetch(at_, 0, 2);
      at_ += kLineBytes;
    }
    if (at_ < panel_end_) return;
    --panels_left_;
    panel_end_ += part_.panel_bytes;
    at_ = panel_end_ - part_.bytes;
  }

 private:
  static constexpr std::int64_t kLineBytes = 64;

  const std::byte* at_;
  const std::byte* panel_end_;
  const PanelPart part_;
  std::int64_t lines_a_step_ = 0;
  std::int64_t panels_left_ = 0;
};

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_PREFETCH_H_
