#include "core/engine/copy_pace.h"

#include <algorithm>
#include <utility>

namespace softlookup {

absl::Duration CopyPace::RestAfterWrite(absl::Time begin, absl::Time end) {
  const std::uint64_t others = calls_() - ++writes_;
  if (others != std::exchange(other_calls_, others)) last_call_ = end;
  is_busy_ = end - last_call_ < kBusyTime;
  return is_busy_ ? std::min(kRestPerWrite * (end - begin), kRestMax) : absl::ZeroDuration();
}

}  // namespace softlookup
