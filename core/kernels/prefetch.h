#ifndef SOFTLOOKUP_CORE_KERNELS_PREFETCH_H_
#define SOFTLOOKUP_CORE_KERNELS_PREFETCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/kernels/panel.h"

namespace softlookup::kernels {

// The same range of bytes in each of several contiguous panels of a block. While a kernel computes,
// it prefetches these bytes into the second-level cache. The next kernel reads the bytes and finds
// them there.
struct PanelPart {
  const std::byte* first = nullptr;  // Start of the range in the first panel.
  std::int64_t bytes = 0;            // Length of the range.
  std::int64_t panel_bytes = 0;      // From the start of a panel to the start of the next.
  std::int64_t panel_count = 0;
};

// Returns the bytes [begin, end), counted from a panel's start, of each full panel among `panels`.
inline PanelPart PartOf(const BlockView& block, PanelRange panels, std::int64_t begin,
                        std::int64_t end) {
  const std::int64_t count = std::min(panels.end, block.full_panel_count) - panels.begin;
  if (count <= 0) return {};
  const std::int64_t panel_bytes = block.shape.bytes();
  return {.first = block.full_panels + panels.begin * panel_bytes + begin,
          .bytes = end - begin,
          .panel_bytes = panel_bytes,
          .panel_count = count};
}

inline PanelPart ValuesOf(const BlockView& block, PanelRange panels) {
  return PartOf(block, panels, 0, block.shape.key_offset(0, 0));
}

// Returns the keys, with the scales of keys and values that lie behind them.
inline PanelPart KeysOf(const BlockView& block, PanelRange panels) {
  return PartOf(block, panels, block.shape.key_offset(0, 0), block.shape.bytes());
}

// Returns true if the CPU's own prefetching is expected to be faster than prefetch instructions, in
// a scan of about `scan_bytes` of rows for one query alone. On Intel's CPUs it always is (measured
// on a CPU of 2023). AMD's CPUs begin their own prefetching anew at each page of 4 KiB. So on them
// it is faster only for rows in the third-level cache, which has 32 MiB for a core of Zen 3 to 5.
// On Zen 3, prefetch instructions made a scan of 10 MB in this cache take 1.6 times as long.
// Returns false on all CPUs but x86-64.
inline bool CpuReadsAhead(std::int64_t scan_bytes) {
#if defined(__x86_64__)
  constexpr std::int64_t kCachedBytes = std::int64_t{32} << 20;
  return scan_bytes <= kCachedBytes || __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}

// Prefetches a PanelPart by cache lines, spread evenly over `step_count` calls of Step().
class Prefetcher {
 public:
  Prefetcher(const PanelPart& part, std::int64_t step_count)
      : part_(part),
        step_count_(step_count),
        panels_left_(step_count > 0 && part.bytes > 0 ? part.panel_count : 0),
        line_count_((part.bytes + kLineBytes - 1) / kLineBytes * panels_left_) {
    if (panels_left_ == 0) return;
    at_ = part.first;
    panel_end_ = part.first + part.bytes;
  }

  void Step() {
    for (due_ += line_count_; due_ > 0 && panels_left_ > 0; due_ -= step_count_) {
      __builtin_prefetch(at_, 0, 2);
      if (panel_end_ - at_ > kLineBytes) {
        at_ += kLineBytes;
      } else if (--panels_left_ > 0) {
        panel_end_ += part_.panel_bytes;
        at_ = panel_end_ - part_.bytes;
      }
    }
  }

 private:
  static constexpr std::int64_t kLineBytes = 64;

  const PanelPart part_;
  const std::int64_t step_count_;
  std::int64_t panels_left_;
  const std::int64_t line_count_;
  std::int64_t due_ = 0;  // Lines that are due but not prefetched, times step_count_.
  const std::byte* at_ = nullptr;
  const std::byte* panel_end_ = nullptr;
};

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_PREFETCH_H_
