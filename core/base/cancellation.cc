#include "core/base/cancellation.h"

#include <utility>

#include "absl/time/clock.h"
#include "core/base/error.h"

namespace softlookup {

void CancelToken::Cancel() {
  absl::AnyInvocable<void()> callback;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_.store(true, std::memory_order_release);
    callback = std::exchange(callback_, nullptr);
  }
  if (callback) callback();
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

void CancelToken::OnCancel(absl::AnyInvocable<void()> callback) {
  {
    absl::MutexLock lock(&mutex_);
    if (!cancelled_.load(std::memory_order_relaxed)) {
      callback_ = std::move(callback);
      return;
    }
  }
  callback();
}

}  // namespace softlookup
