#include "core/base/cancellation.h"

#include <utility>

#include "absl/time/clock.h"
#include "core/base/error.h"

namespace softlookup {

void CancelToken::Cancel() {
  cancelled_.store(true, std::memory_order_release);
  EndWait(Check());
}

void CancelToken::EndWait(absl::Status status) {
  absl::AnyInvocable<void(absl::Status)> callback;
  {
    absl::MutexLock lock(&mutex_);
    if (wait_end_.ok()) wait_end_ = status;
    callback = std::exchange(callback_, nullptr);
  }
  if (callback) callback(std::move(status));
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

void CancelToken::OnWaitEnd(absl::AnyInvocable<void(absl::Status)> callback) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (wait_end_.ok()) {
      callback_ = std::move(callback);
      return;
    }
    status = wait_end_;
  }
  callback(std::move(status));
}

}  // namespace softlookup
