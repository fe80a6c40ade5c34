#include "core/base/cancellation.h"

#include "absl/time/clock.h"
#include "core/base/error.h"

namespace softlookup {

void CancelToken::Cancel() {
  cancelled_.store(true, std::memory_order_release);
  wait_.End(Check());
}

absl::Status CancelToken::Check() const {
  if (deadline_ != absl::InfiniteFuture() && absl::Now() >= deadline_) {
    return MakeError(reasons::kDeadlineExceeded, "The deadline passed before the answer was ready");
  }
  if (cancelled_.load(std::memory_order_acquire)) {
    return MakeError(reasons::kCancelled, "The caller cancelled the call");
  }
  return absl::OkStatus();
}

}  // namespace softlookup
