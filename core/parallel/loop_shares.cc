#include "core/parallel/loop_shares.h"

#include "core/base/check.h"

namespace softlookup {

LoopShares::LoopShares(std::int64_t count, int share_count)
    : shares_(static_cast<std::size_t>(share_count)) {
  SOFTLOOKUP_DCHECK(share_count >= 1) << share_count << " shares";
  for (int i = 0; i < share_count; ++i) {
    Share& share = shares_[static_cast<std::size_t>(i)];
    share.next.store(count * i / share_count, std::memory_order_relaxed);
    share.end = count * (i + 1) / share_count;
  }
}

std::optional<std::int64_t> LoopShares::Take(int own) {
  const std::size_t share_count = shares_.size();
  for (std::size_t k = 0; k < share_count; ++k) {
    Share& share = shares_[(static_cast<std::size_t>(own) + k) % share_count];
    // Without this check, repeated calls would increase `next` without bound.
    if (share.next.load(std::memory_order_relaxed) >= share.end) continue;
    const std::int64_t i = share.next.fetch_add(1, std::memory_order_relaxed);
    if (i < share.end) return i;
  }
  return std::nullopt;
}

}  // namespace softlookup
